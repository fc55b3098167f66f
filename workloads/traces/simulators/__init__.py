"""Traces in the forms of published simulators: Muri's, Tiresias's, Gavel's and Pollux's."""
