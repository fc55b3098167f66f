"""Numbers as the cells of tables; a missing one is a dash. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from testbed.metrics.confidence import is_proven

MISSING: Final = "-"


def percent(value: float | None, digits: int = 1) -> str:
    """``0.655`` -> ``65.5``; the column's title says %."""
    return MISSING if value is None else f"{100 * value:.{digits}f}"


def points(value: float | None) -> str:
    """``13`` -> ``+13.0``."""
    return MISSING if value is None else f"{value:+.1f}"


def seconds(value: float | None, digits: int = 3) -> str:
    """``1.7`` -> ``1.700``; the column's title says s."""
    return MISSING if value is None else f"{value:.{digits}f}"


def change(value: float | None) -> str:
    """``-0.18`` -> ``-18.0``; the column's title says %."""
    return MISSING if value is None else f"{100 * value:+.1f}"


def tenths(value: float) -> str:
    """``1.7`` -> ``1.7``, ``120`` -> ``120.0``."""
    return f"{value:.1f}"


def whole(value: float) -> str:
    """``2.0`` -> ``2``."""
    return f"{value:.0f}"


def proven_as_shown(difference: float, spread: float | None, form: Callable[[float], str] = points) -> bool:
    """Whether ``difference`` is larger than its ``spread``, and other than 0 in the digits of ``form``."""
    return is_proven(difference, spread) and any(digit in "123456789" for digit in form(difference))


def with_spread(difference: float, spread: float | None, form: Callable[[float], str] = points) -> str:
    """``+3.1±0.4``; in parentheses what proves nothing: ``(+0.3±0.4)``, ``(+0.3)`` of one run, ``(+0.0±0.0)``."""
    text = form(difference) if spread is None else f"{form(difference)}\N{PLUS-MINUS SIGN}{form(spread).lstrip('+')}"
    return text if proven_as_shown(difference, spread, form) else f"({text})"


def adding_up(parts: Sequence[float], digits: int = 1) -> list[float]:
    """``parts`` rounded to ``digits`` so that what is shown adds up to their rounded sum.

    Each is rounded down first; those that lost most by that get the rest. No part is off by a whole last digit.
    """
    unit = 10**digits
    floors = [math.floor(part * unit) for part in parts]
    missing = round(sum(parts) * unit) - sum(floors)
    by_loss = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place] * unit)
    for place in by_loss[:missing]:
        floors[place] += 1
    return [floor / unit for floor in floors]
