"""Training of large models: published runs, and what schedulers are worth to the jobs of today."""
