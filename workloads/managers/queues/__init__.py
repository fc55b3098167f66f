"""Queues of a cluster manager: whose turn it is."""
