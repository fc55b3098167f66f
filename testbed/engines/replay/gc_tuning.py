"""Rarer garbage collection for code that allocates many objects and next to no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 50_000
"""Objects allocated until a collection of the youngest generation, in place of Python's 700."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect seldom: a tenth of a replay's time went into scanning a fabric that stays."""
    before = gc.get_threshold()
    gc.set_threshold(MANY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
