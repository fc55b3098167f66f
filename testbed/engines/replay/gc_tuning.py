"""The garbage collector, asked less often while much is made and next to nothing of it in cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 50_000
"""Objects made and kept until the collector looks at the youngest, in place of Python's 700."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector look seldom: a tenth of a replay's time went into looking at a fabric that stays."""
    before = gc.get_threshold()
    gc.set_threshold(MANY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
