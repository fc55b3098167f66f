"""Placement shorthand names the GPUs it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario.on_fabric import expand
from topologies.clos import clos96

FABRIC = clos96()


@pytest.mark.parametrize(
    ("item", "gpus"),
    [
        ("h2", tuple(f"h2g{gpu}" for gpu in range(8))),
        ("h1:0-3", ("h1g0", "h1g1", "h1g2", "h1g3")),
        ("h1:0,2", ("h1g0", "h1g2")),
        ("h11:6-7,0", ("h11g6", "h11g7", "h11g0")),
        ("h1: 0, 2 ", ("h1g0", "h1g2")),
        ("h1g4", ("h1g4",)),
    ],
)
def test_an_item_means_these_gpus(item: str, gpus: tuple[str, ...]) -> None:
    assert expand(item, FABRIC) == gpus


@pytest.mark.parametrize("item", ["", "h", "g0", "h0:", "h0:1-", "h0g", "h0:0-1-2", "tor0", "h0g0,h0g1", "h٣"])
def test_what_is_no_placement_is_refused(item: str) -> None:
    with pytest.raises(ValueError, match="is no placement, expected a host"):
        expand(item, FABRIC)


@given(st.integers(0, 11), st.sets(st.integers(0, 7), min_size=1))
def test_listed_gpus_come_back_in_the_order_written(host: int, numbers: set[int]) -> None:
    listed = ",".join(map(str, numbers))
    assert expand(f"h{host}:{listed}", FABRIC) == tuple(f"h{host}g{number}" for number in numbers)
