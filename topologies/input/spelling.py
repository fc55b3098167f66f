"""What was probably meant by a name that does not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NEAR: Final = 0.66
"""The least ratio of equal letters (difflib) of two names that may be mistaken for each other."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that is spelled nearly like ``name``, or the only one that begins with it.

    In any case of letters; "" if there is none.
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    typed = name.lower()
    begun = [each for each in by_lower if len(typed) > 1 and each.startswith(typed)]
    near = get_close_matches(typed, by_lower, 1, NEAR) or (begun if len(begun) == 1 else [])
    return by_lower[near[0]] if near else ""


def expectation(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'crux'?`` where a known name is near, else ``expected one of a, b, c``."""
    names = list(known)
    near = nearest(name, names)
    return f"did you mean '{near}'?" if near else f"expected one of {', '.join(names) or 'nothing'}"
