"""Cluster managers beside the simulators of their authors."""
