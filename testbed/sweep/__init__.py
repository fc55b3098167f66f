"""Sweeps: the product of parameters and seeds over one scenario, each point a run of its own, one table at the end."""
