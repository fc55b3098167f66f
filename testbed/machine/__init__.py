"""This machine: what it has, what it carries, and what a run owns on it."""
