"""Parts of a job's entry in a scenario."""
