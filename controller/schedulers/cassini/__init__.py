"""CASSINI (Rajasekaran et al., NSDI 2024)."""
