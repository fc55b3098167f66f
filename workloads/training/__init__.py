"""Training of large models as it is laid out: shapes, parallel layouts, schedules, what they compute and send."""
