"""What parts have in common: options of a kind, which name the part where they are wrong, and rounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor, inf

from topologies.limits import OPTION, WHOLE_NUMBER, one_line
from workloads.managers.gpu_index import Structure

LEAST = 0.001
"""Of a number above 0: rounds and slices of less than a millisecond would never end."""

_SHOWN = 60
"""Characters of a value in a message."""


def number(part: str, option: str, value: object, *, above: float = -inf, least: float = -inf) -> float:
    """Return ``value`` as a number; ``ValueError``, one line, if it is no number, not ``above``, or below ``least``."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > OPTION:
        raise ValueError(f"option '{option}' of {part} must be a number of at most {OPTION:g}, not '{shown(value)}'")
    if not isinstance(value, bool) and isinstance(value, int | float) and value > above and value >= least:
        if 0 < value < LEAST:
            raise ValueError(
                f"option '{option}' of {part} must be a number of at least {LEAST:g}, not '{shown(value)}'"
            )
        return float(value)
    bound = f"above {above:g}" if above > -inf else f"of at least {least:g}"
    raise ValueError(f"option '{option}' of {part} must be a number {bound}, not '{shown(value)}'")


def shown(value: object) -> str:
    """Return what an option was given, cut short, for a message of one line."""
    try:
        return one_line(str(value), _SHOWN)
    except ValueError:  # Python writes no whole number of thousands of digits
        return "a number of too many digits"


def share(part: str, option: str, value: object) -> float:
    """Return ``value`` as a share; ``ValueError``, one line, if it is no number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"option '{option}' of {part} must be a number from 0 to 1, not '{shown(value)}'")
    return float(value)


def whole(part: str, option: str, value: object, *, least: int = -WHOLE_NUMBER) -> int:
    """Return ``value`` as a whole number; ``ValueError``, one line, if it is none, below ``least`` or too large."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= WHOLE_NUMBER:
        bound = f" of at least {least}" if least > -WHOLE_NUMBER else ""
        raise ValueError(f"option '{option}' of {part} must be a whole number{bound}, not '{shown(value)}'")
    return value


def one_of(part: str, option: str, value: object, known: Iterable[str]) -> str:
    """Return ``value``; ``ValueError``, one line, if it is none of the words that are ``known``."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"option '{option}' of {part} must be one of {', '.join(words)}, not '{shown(value)}'")
    return value


def listed(part: str, option: str, value: object, of: str) -> tuple[object, ...]:
    """Return ``value`` as a tuple; ``ValueError``, one line, if it is no list; ``of`` says of what."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"option '{option}' of {part} must be a list of {of}, not '{shown(value)}'")
    return tuple(value)


def hosts_named(part: str, option: str, value: object) -> tuple[str, ...]:
    """Return ``value`` as names of hosts; ``ValueError``, one line, if it is no list of words."""
    of = "hosts such as [h0, h1]"
    hosts = listed(part, option, value, of)
    names = tuple(host for host in hosts if isinstance(host, str))
    if len(names) < len(hosts):
        raise ValueError(f"option '{option}' of {part} must be a list of {of}, not '{shown(value)}'")
    return names


def mapped(part: str, option: str, value: object, such_as: str) -> dict[str, object]:
    """Return ``value`` with its keys as text; ``ValueError``, one line, if it is no mapping; None is an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"option '{option}' of {part} must be a mapping such as {such_as}, not '{shown(value)}'")
    return {str(key): inside for key, inside in (value or {}).items()}


@contextmanager
def naming(part: str, option: str) -> Iterator[None]:
    """Name the option and the part in a ``ValueError`` from inside, which says only what is wrong with a value."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"option '{option}' of {part}: {one_line(str(error))}") from None


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
        raise ValueError(f"option '{option}' of {part} must be true or false, not '{shown(value)}'")
    return value


def at_round(now_s: float, round_s: float) -> bool:
    """Whether a round of ``round_s`` seconds begins now."""
    rounds = now_s / round_s
    return abs(rounds - round(rounds)) <= 1e-9 * max(1.0, rounds)
