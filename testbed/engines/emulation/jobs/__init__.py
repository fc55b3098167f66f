"""What the hosts of a run do for its jobs."""
