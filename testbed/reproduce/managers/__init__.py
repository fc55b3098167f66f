"""Experiments about cluster managers on emulated packets."""
