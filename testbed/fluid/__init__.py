"""Rates of flows computed at flow level: max-min fairness under strict priority, and steady states of periodic jobs."""
