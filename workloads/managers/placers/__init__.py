"""Placers of a cluster manager: on which GPUs a job runs."""
