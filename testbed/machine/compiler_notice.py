"""What is said where the compiler is missing: how much longer a computation takes, and the command that brings it."""

from __future__ import annotations

from typing import Final

from testbed.machine.distribution import EXTRAS, installing

FLOWS: Final = "2 to 8 times"
PROPORTIONAL: Final = "2 to 20 times"
PACKETS: Final = "4 to 100 times"
"""How many times as long without numba as with it, once its code is compiled: measured, see the lab notebook."""
LONGER: Final = {"max-min": FLOWS, "proportional": PROPORTIONAL}


def slow_flow_engine(*sharings: str) -> str:
    """Return the line for runs of the flow engine, for the slowest of ``sharings``; empty with the compiler."""
    slowest = max(sharings, key=list(LONGER).index)
    return _line(f"the flow engine takes {LONGER[slowest]} as long (sharing: {slowest})")


def slow_engine(engine: str, sharing: str) -> str:
    """Return the line for a run of ``engine``; empty with the compiler, and for an emulation."""
    if engine == "simulation":
        return _line(f"the simulation takes {PACKETS} as long")
    return slow_flow_engine(sharing) if engine == "flow" else ""


def slow_experiments() -> str:
    """Return the line for experiments of papers: replays, and runs of the flow engine of every kind."""
    return _line("experiments that compute take 2 to 100 times as long")


def _line(what: str) -> str:
    missing = EXTRAS["fast"].missing()
    return f"without {', '.join(missing)} {what}; to install it: {installing('fast')}" if missing else ""
