"""The replay engine: weeks of a trace on thousands of GPUs."""
