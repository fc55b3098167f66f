"""Experiments of papers, made again: every one gives rows with the paper's numbers beside those found here."""
