"""Experiments about cluster managers, and Lina's training step."""
