"""Metrics of jobs that answer requests."""
