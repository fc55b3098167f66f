"""Experiments about cluster managers, and about what a job does to its own traffic."""
