"""What policies have in common: options that are numbers, and rounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf

from topologies.limits import OPTION
from workloads.managers.gpu_index import Structure

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


def hosts_named(part: str, option: str, value: Sequence[str]) -> tuple[str, ...]:
    """Return ``value`` as names of hosts; ``ValueError``, one line, if it is no list of words."""
    if isinstance(value, str) or not all(isinstance(host, str) for host in value):
        raise ValueError(f"option '{option}' of {part} must be a list of hosts such as [h0, h1], not '{value}'")
    return tuple(value)


def require_hosts(part: str, option: str, hosts: Sequence[str], structure: Structure) -> None:
    """Raise ``ValueError``, one line, for the first of ``hosts`` that the fabric lacks."""
    unknown = next((host for host in hosts if host not in structure.host_index), None)
    if unknown is not None:
        expected = f"hosts of the fabric such as {structure.hosts[0]}"
        raise ValueError(f"option '{option}' of {part} names '{unknown}', expected {expected}")


def next_round(now_s: float, round_s: float) -> float:
    """Return the first multiple of ``round_s`` after ``now_s``."""
    return (floor(now_s / round_s + 1e-9) + 1) * round_s


def flag(part: str, option: str, value: object) -> bool:
    """Return ``value`` as a yes or no; ``ValueError``, one line, if it is neither true nor false."""
    if not isinstance(value, bool):
        raise ValueError(f"option '{option}' of {part} must be true or false, not '{value}'")
    return value


def at_round(now_s: float, round_s: float) -> bool:
    """Whether a round of ``round_s`` seconds begins now."""
    rounds = now_s / round_s
    return abs(rounds - round(rounds)) <= 1e-9 * max(1.0, rounds)
