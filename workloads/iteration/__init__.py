"""What a job does in an iteration, on any network. Pure: both engines drive it."""
