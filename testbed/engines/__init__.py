"""Engines carry experiments out: by packets, by computed rates, or over weeks of a trace."""
