"""The reasons why a flow may not send for now."""

from __future__ import annotations

from enum import IntFlag


class Hold(IntFlag):
    """Reasons that add up; a flow without any sends."""

    NOTHING = 0
    PATH_CHANGE = 1
    """Its path changes in the switches."""
    ZERO_RATE = 2
    """Its rate is 0."""
    PCIE_TURN = 4
    """A flow of a higher level uses the same PCIe link."""
    HEAD_START = 8
    """It is paced, and its message begins later by enough to end when its rate implies."""
    CUT_OFF = 16
    """Failures have left no way between the ports of its job."""
