"""Traces of production clusters as values: readers of public formats, a generator, and statistics."""
