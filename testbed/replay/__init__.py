"""Replaying traces: weeks of jobs that come, are placed, contend and go, at flow level."""
