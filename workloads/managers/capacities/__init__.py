"""Capacities of a cluster manager: which hosts it may use, and when."""
