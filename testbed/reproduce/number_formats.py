"""How the tables of experiments print numbers: formats of :class:`.paper_experiment.PaperColumn`."""

from __future__ import annotations

from testbed.metrics.formats import signed


def percent(value: float) -> str:
    """``0.655`` -> ``65.5``."""
    return f"{100 * value:.1f}"


def fine_percent(value: float) -> str:
    """``0.4366`` -> ``43.66``."""
    return f"{100 * value:.2f}"


def change(value: float) -> str:
    """``-0.18`` -> ``-18.0``."""
    return points(100 * value)


def fine_change(value: float) -> str:
    """``-0.0183`` -> ``-1.83``; without a sign where it rounds to nothing."""
    text = f"{100 * value:+.2f}"
    return text if text[1:] != "0.00" else "0.00"


def points(value: float) -> str:
    """``13`` -> ``+13.0``; without a sign where it rounds to nothing."""
    return signed(value)


def times(value: float) -> str:
    """``1.73`` -> ``1.73 x``."""
    return f"{value:.2f} x"


def hundredths(value: float) -> str:
    """``1.732`` -> ``1.73``."""
    return f"{value:.2f}"


def tenths(value: float) -> str:
    """``25.31`` -> ``25.3``."""
    return f"{value:.1f}"


def thousandths(value: float) -> str:
    """``0.3517`` -> ``0.352``."""
    return f"{value:.3f}"


def milliseconds(seconds: float) -> str:
    """Seconds to a thousandth: ``340306.27712`` -> ``340,306.277``."""
    return f"{seconds:,.3f}"


def whole(value: float) -> str:
    """``12680.8`` -> ``12,681``."""
    return f"{value:,.0f}"


def number(value: float) -> str:
    """Three digits or more: ``137.2`` -> ``137``, ``8.574`` -> ``8.57``, ``180000`` -> ``180,000``."""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def count(value: float) -> str:
    """``12680.8`` -> ``12681``."""
    return f"{value:.0f}"


def hours(seconds: float) -> str:
    """Seconds in hours: ``5400`` -> ``1.50``."""
    return f"{seconds / 3600:.2f}"


def spread_points(share: float) -> str:
    """A spread of shares in points: ``0.0123`` -> ``1.23``."""
    return f"{100 * share:.2f}"
