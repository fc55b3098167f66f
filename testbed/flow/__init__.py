"""Flow-level models: rates are computed, no packet is sent."""
