"""Queues of a cluster manager: which job is served next."""
