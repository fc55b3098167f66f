"""Levels and DSCP translate both ways, and nothing outside the eight classes passes."""

from __future__ import annotations

import pytest

from topologies.shaping import DEFAULT_LEVELS, dscp_of_level, level_of_dscp, tos_of_level


def test_level_0_is_class_selector_7_and_level_7_the_default_class() -> None:
    assert [dscp_of_level(level) for level in range(DEFAULT_LEVELS)] == [56, 48, 40, 32, 24, 16, 8, 0]


def test_dscp_gives_the_level_back() -> None:
    assert [level_of_dscp(dscp_of_level(level)) for level in range(8)] == list(range(8))


def test_tos_is_dscp_above_the_ecn_bits() -> None:
    assert (tos_of_level(0), tos_of_level(6), tos_of_level(7)) == (0xE0, 0x20, 0)


@pytest.mark.parametrize(("level", "levels"), [(-1, 8), (8, 8), (3, 3), (0, 9), (0, 0)])
def test_levels_outside_the_range_are_refused(level: int, levels: int) -> None:
    with pytest.raises(ValueError, match="level"):
        dscp_of_level(level, levels)


@pytest.mark.parametrize("dscp", [-8, 1, 57, 64])
def test_a_dscp_that_is_no_class_selector_is_refused(dscp: int) -> None:
    with pytest.raises(ValueError, match="DSCP"):
        level_of_dscp(dscp)
