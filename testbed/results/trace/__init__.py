"""The parts of a run's timeline, as Chrome trace events."""
