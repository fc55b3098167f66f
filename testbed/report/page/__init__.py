"""The page of a run as one file: what it shows as JSON, its JavaScript modules, and how they become ``report.html``."""
