"""Strict priority levels and how packets carry them: level 0 is served first, as class selector CS7.

Level ``k`` is DSCP ``8 * (7 - k)``; level 7 is the default class, DSCP 0.
"""

from __future__ import annotations

from typing import Final

DEFAULT_LEVELS: Final = 8


def dscp_of_level(level: int, levels: int = DEFAULT_LEVELS) -> int:
    """Return the DSCP of ``level``; ``ValueError`` unless ``0 <= level < levels <= 8``."""
    if not 1 <= levels <= DEFAULT_LEVELS:
        raise ValueError(f"levels must be from 1 to {DEFAULT_LEVELS}, not {levels}")
    if not 0 <= level < levels:
        raise ValueError(f"level must be from 0 to {levels - 1}, not {level}")
    return 8 * (DEFAULT_LEVELS - 1 - level)


def level_of_dscp(dscp: int) -> int:
    """Return the level whose class holds ``dscp``; ``ValueError`` unless it is a class selector, 0, 8, .. 56."""
    if dscp % 8 or not 0 <= dscp <= 56:
        raise ValueError(f"DSCP must be one of 0, 8, .. 56, not {dscp}")
    return DEFAULT_LEVELS - 1 - dscp // 8


def tos_of_level(level: int, levels: int = DEFAULT_LEVELS) -> int:
    """Return the value of ``IP_TOS`` for ``level``: its DSCP above the two ECN bits."""
    return dscp_of_level(level, levels) << 2
