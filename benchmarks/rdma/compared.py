"""A row of a table that has a measured number beside what it should be by analysis."""

from __future__ import annotations

from benchmarks.common import Line, Outcome


def compared(
    what: str,
    flows: int,
    here: float,
    reference: float,
    margin: float | tuple[float, float] | None,
    source: str,
) -> Line:
    """``margin``: by how much of ``reference`` the number ``here`` may differ, down and up; None for no target."""
    columns = {
        "what": what,
        "flows": flows,
        "here": here,
        "reference": reference,
        "off": f"{here / reference - 1:+.0%}",
    }
    if margin is None:
        return Line(columns, note=source)
    down, up = (margin, margin) if isinstance(margin, float) else margin
    met = (1 - down) * reference <= here <= (1 + up) * reference
    outcome: Outcome = "pass" if met else "missed"
    return Line(columns, f"{down:.0%}" if down == up else f"-{down:.0%} to +{up:.0%}", outcome, source)


def at_most(what: str, flows: int, here: float, most: float, source: str) -> Line:
    """A number ``here`` that is to be no higher than ``most``."""
    columns = {"what": what, "flows": flows, "here": here, "reference": most}
    return Line(columns, "at most", "pass" if here <= most else "missed", source)


def at_least(what: str, flows: int | str, here: float, least: float, source: str) -> Line:
    """A number ``here`` that is to be no lower than ``least``."""
    columns = {"what": what, "flows": flows, "here": here, "reference": least}
    return Line(columns, "at least", "pass" if here >= least else "missed", source)
