"""Policies of a cluster manager: what to do with the jobs that may start. A file per system."""
