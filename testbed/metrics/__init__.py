"""Metrics of runs, jobs and cluster managers; the summary that holds them, and checks on it."""
