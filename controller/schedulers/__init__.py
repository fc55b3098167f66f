"""Communication schedulers, a file or folder per paper."""
