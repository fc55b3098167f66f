"""Verbs that run nothing: what there is, and how to begin."""
