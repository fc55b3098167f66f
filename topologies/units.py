"""Quantities with units: what people write in scenario files, and how numbers are shown again.

Everything inside the testbed is in seconds, bytes, bit/s and FLOP. Only this module knows the
spellings ``200Gbps``, ``1.2s`` and ``350MB``. Prefixes are decimal (1 MB = 10**6 bytes); the
binary ``KiB``, ``MiB`` and ``GiB`` are accepted for sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NUMBER: Final = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)\s*([A-Za-z/]+)\s*$")

_PREFIX: Final[Mapping[str, float]] = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}

RATE_UNITS: Final[Mapping[str, float]] = {
    f"{prefix}{unit}": factor for prefix, factor in _PREFIX.items() for unit in ("bps", "bit/s", "b/s")
}
SIZE_UNITS: Final[Mapping[str, float]] = {
    **{f"{prefix}B": factor for prefix, factor in _PREFIX.items()},
    **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
}
TIME_UNITS: Final[Mapping[str, float]] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
WORK_UNITS: Final[Mapping[str, float]] = {
    f"{prefix}{unit}": factor for prefix, factor in _PREFIX.items() for unit in ("FLOP", "flop")
}


def _parse(text: str, units: Mapping[str, float], example: str) -> float:
    match = _NUMBER.match(text)
    if match is None or match.group(2) not in units:
        raise ValueError(f"'{text}' is not a quantity like {example}")
    return float(match.group(1)) * units[match.group(2)]


def parse_rate(text: str) -> float:
    """Return the rate in bit/s that ``text`` (``200Gbps``) names; ``ValueError`` if it names none."""
    return _parse(text, RATE_UNITS, "200Gbps")


def parse_size(text: str) -> float:
    """Return the size in bytes that ``text`` (``350MB``) names; ``ValueError`` if it names none."""
    return _parse(text, SIZE_UNITS, "350MB")


def parse_time(text: str) -> float:
    """Return the time in seconds that ``text`` (``1.2s``) names; ``ValueError`` if it names none."""
    return _parse(text, TIME_UNITS, "1.2s")


def parse_work(text: str) -> float:
    """Return the work in FLOP that ``text`` (``3.5TFLOP``) names; ``ValueError`` if it names none."""
    return _parse(text, WORK_UNITS, "3.5TFLOP")


def _format(value: float, unit: str) -> str:
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.4g}{prefix}{unit}"
    return f"{value:.4g}{unit}"


def format_rate(bits_per_second: float) -> str:
    """``12.5e6`` -> ``12.5Mbps``."""
    return _format(bits_per_second, "bps")


def format_size(size: float) -> str:
    """``3.5e8`` -> ``350MB``."""
    return _format(size, "B")


def format_work(flop: float) -> str:
    """``3.5e12`` -> ``3.5TFLOP``."""
    return _format(flop, "FLOP")


def format_time(seconds: float) -> str:
    """``0.0012`` -> ``1.2ms``."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= factor or unit == "us":
            return f"{seconds / factor:.4g}{unit}"
    raise AssertionError("unreachable")
