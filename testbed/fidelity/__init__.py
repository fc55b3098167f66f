"""Whether a run can be believed."""
