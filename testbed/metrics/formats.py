"""Numbers as the cells of tables; a missing one is a dash. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from testbed.metrics.confidence import is_proven
from topologies.units import format_time

MISSING: Final = "-"


def percent(value: float | None, digits: int = 1) -> str:
    """``0.655`` -> ``65.5``; the column's title says %."""
    return MISSING if value is None else f"{100 * value:.{digits}f}"


def signed(value: float | Decimal) -> str:
    """``13`` -> ``+13.0``; what rounds to nothing has no sign: ``-0.04`` -> ``0.0``."""
    text = f"{value:+.1f}"
    return text[1:] if _is_zero(text) else text


def points(value: float | None) -> str:
    """``13`` -> ``+13.0``; beside the two utilisations show :func:`points_between`."""
    return MISSING if value is None else signed(value)


def points_between(before: float | None, after: float | None) -> str:
    """Points from one utilisation to another: the difference of the two as :func:`percent` shows them.

    ``0.7314, 0.7316`` -> ``+0.1``, for they are shown as 73.1 and 73.2: a difference of 0.0 would contradict that.
    """
    if before is None or after is None:
        return MISSING
    return signed(Decimal(percent(after)) - Decimal(percent(before)))


def seconds(value: float | None, digits: int = 3) -> str:
    """``1.7`` -> ``1.700``; the column's title says s. What these digits do not show has its unit: ``28us``."""
    if value is None:
        return MISSING
    return f"{value:.{digits}f}" if _shows(value, digits) else format_time(value)


def tenths_of_seconds(value: float | None) -> str:
    """As :func:`seconds` with one digit: ``1.7``, ``28us``."""
    return seconds(value, 1)


def time_text(value: float, digits: int = 1) -> str:
    """A time in a sentence, with its unit: ``1.7 s``, and ``28us`` where these digits would not show it."""
    return f"{value:.{digits}f} s" if _shows(value, digits) else format_time(value)


def _shows(value: float, digits: int) -> bool:
    """Whether ``digits`` after the point show a time in seconds, with two of its own digits below a second."""
    return value == 0.0 or abs(value) >= min(1.0, 10.0 ** (1 - digits))


def change(value: float | None) -> str:
    """``-0.18`` -> ``-18.0``; the column's title says %."""
    return MISSING if value is None else signed(100 * value)


def tenths(value: float) -> str:
    """``1.7`` -> ``1.7``, ``120`` -> ``120.0``."""
    return f"{value:.1f}"


def whole(value: float) -> str:
    """``2.0`` -> ``2``."""
    return f"{value:.0f}"


def proven_as_shown(difference: float, spread: float | None, form: Callable[[float], str] = points) -> bool:
    """Whether ``difference`` is larger than its ``spread``, and other than 0 in the digits of ``form``."""
    return is_proven(difference, spread) and not _is_zero(form(difference))


def with_spread(
    difference: float, spread: float | None, form: Callable[[float], str] = points, shown: str | None = None
) -> str:
    """``+3.1±0.4``; in parentheses what proves nothing: ``(+0.3±0.4)``, ``(+0.3)`` of one run, ``(0.0±0.0)``.

    ``shown``: the difference as it is to be shown, where ``form`` does not say.
    """
    said = form(difference) if shown is None else shown
    text = said if spread is None else f"{said}\N{PLUS-MINUS SIGN}{form(spread).lstrip('+')}"
    return text if is_proven(difference, spread) and not _is_zero(said) else f"({text})"


def _is_zero(text: str) -> bool:
    return not any(digit in "123456789" for digit in text)


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
