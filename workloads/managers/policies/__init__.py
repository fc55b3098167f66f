"""Policies of a cluster manager: what happens to the jobs whose turn it is. A file per system."""
