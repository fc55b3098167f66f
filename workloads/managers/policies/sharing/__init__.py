"""Policies that let jobs share GPUs."""
