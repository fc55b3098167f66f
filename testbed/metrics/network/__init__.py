"""Metrics of messages and packets."""
