"""The columns of numbers that are kept for each flow of :mod:`testbed.engines.flow.networks.fluid_network`."""

from __future__ import annotations

SIZE, SENT, LEAD, TOTAL, BASE, LIMIT, UNTIL, RATE, BOOKED, WAITS, WEIGHT, HEAVIER = range(12)
COLUMNS = 12
ROUNDING = 1e-7
"""Share of a message below which a remainder is rounding."""
SLICE = 1 / 16
"""Share of a message's lead that a flow which has caught up lets come in before it is its own master again.

Without it a flow and the one it forwards, at a lower level on the same link, would take turns infinitely often.
"""
NOBODY = -1
