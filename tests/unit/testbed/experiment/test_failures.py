"""What of a network is left at each moment, whatever overlaps, flaps or is drawn."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.experiment.failures import (
    KINDS,
    Degraded,
    DrawnFailures,
    Failure,
    cables_of,
    change_between,
    drawn,
    part_spans,
    parts_of,
    states,
    unreachable_hosts,
)
from tests.unit.controller.conftest import FABRICS, small

FABRIC = small()
PARTS = [*FABRIC.hosts, *FABRIC.nics, *FABRIC.switches, *(link.name for link in FABRIC.network_links)]
TIMES = st.floats(0.0, 50.0)


def failure(part: str, begin: float, lasts: float) -> Failure:
    return Failure(part, begin, begin + lasts)


@given(st.lists(st.builds(failure, st.sampled_from(PARTS), TIMES, st.floats(0.1, 30.0)), max_size=6), TIMES)
def test_at_each_moment_what_is_down_is_what_some_failure_takes_along(failures: list[Failure], moment: float) -> None:
    active = [each for each in failures if each.until_s is not None and each.at_s <= moment < each.until_s]
    expected = {cable for each in active for cable in cables_of(each.part, FABRIC)}
    before = [state for state in states(failures, FABRIC) if state.at_s <= moment]
    assert (before[-1].down if before else frozenset()) == expected
    hosts = {each.part for each in active if each.part in FABRIC.hosts}
    assert (before[-1].hosts if before else frozenset()) == hosts


def test_both_directions_of_a_cable_are_one_and_overlapping_failures_end_with_the_last() -> None:
    found = states([Failure("tor0->agg0", 1.0, 5.0), Failure("agg0->tor0", 3.0, 8.0)], FABRIC)
    assert [(state.at_s, len(state.down)) for state in found] == [(1.0, 1), (8.0, 0)]


def test_shares_and_losses_of_one_cable_add_up() -> None:
    failures = [Failure("tor0->agg0", 1.0, share=0.5), Failure("tor0->agg0", 2.0, share=0.5, loss=0.1)]
    first, second = states(failures, FABRIC)
    assert dict(first.degraded) == {"tor0->agg0": Degraded(0.5, 0.0)}
    assert dict(second.degraded) == {"tor0->agg0": Degraded(0.25, 0.1)}
    (*_, last) = states([*failures, Failure("tor0", 3.0)], FABRIC)
    assert not last.degraded and "tor0->agg0" in last.down


def test_what_flaps_is_down_and_up_in_turn_until_its_end() -> None:
    found = states([Failure("h0n0", 10.0, 14.0, down_s=1.0, up_s=1.0)], FABRIC)
    assert [(state.at_s, bool(state.down)) for state in found] == [(10, True), (11, False), (12, True), (13, False)]


@pytest.mark.parametrize("kind", KINDS)
def test_failures_come_as_often_as_asked_and_a_part_more_changes_nothing_for_the_others(kind: str) -> None:
    fabric = FABRICS["clos3"]()
    rule = DrawnFailures(kind, per_hour=60.0, lasts_s=20.0)  # type: ignore[arg-type]
    parts = parts_of(rule.kind, fabric)
    found = drawn(rule, fabric, 36_000.0, seed=3)
    assert parts and {each.part for each in found} == set(parts)
    # 60 s of work, then 20 s down: 45 an hour.
    assert len(found) == pytest.approx(450 * len(parts), rel=0.15)
    assert found == drawn(rule, fabric, 36_000.0, seed=3) != drawn(rule, fabric, 36_000.0, seed=4)


def test_in_words_and_as_spans() -> None:
    found = states([Failure("tor0", 1.0, 4.0), Failure("h3", 2.0)], FABRIC)
    said = [change_between(before, after) for before, after in pairwise(found)]
    assert said == ["h3 failed", "tor0 works again"]
    assert part_spans(found, inf) == [("tor0", 1.0, 4.0), ("h3", 2.0, None)]
    assert part_spans(found, 3.0) == [("tor0", 1.0, None), ("h3", 2.0, None)]


def test_hosts_without_any_cable_are_out() -> None:
    (state,) = states([Failure("tor0", 1.0)], FABRIC)
    assert unreachable_hosts(FABRIC, state) == {"h0", "h1"}
