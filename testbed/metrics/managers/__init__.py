"""Metrics of cluster managers: what became of their jobs, and how long these waited."""
