"""What policies have in common: options that are numbers, and rounds."""

from __future__ import annotations

from math import floor, inf

from topologies.limits import OPTION

LEAST = 0.001
"""Of a number above 0: rounds and slices of less than a millisecond would never end."""


def number(part: str, option: str, value: object, *, above: float = -inf, least: float = -inf) -> float:
    """Return ``value`` as a number; ``ValueError``, one line, if it is no number, not ``above``, or below ``least``."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > OPTION:
        raise ValueError(f"option '{option}' of {part} must be a number of at most {OPTION:g}, not '{value}'")
    if not isinstance(value, bool) and isinstance(value, int | float) and value > above and value >= least:
        if 0 < value < LEAST:
            raise ValueError(f"option '{option}' of {part} must be a number of at least {LEAST:g}, not '{value}'")
        return float(value)
    bound = f"above {above:g}" if above > -inf else f"of at least {least:g}"
    raise ValueError(f"option '{option}' of {part} must be a number {bound}, not '{value}'")


def next_round(now_s: float, round_s: float) -> float:
    """Return the first multiple of ``round_s`` after ``now_s``."""
    return (floor(now_s / round_s + 1e-9) + 1) * round_s
