"""Jobs as values: models, collectives, placement, analysis; the worker process is the one adapter."""
