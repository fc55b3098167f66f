"""A run of the flow engine says how far it is from its first events on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine
from testbed.progress import remaining


def told(scenario: str, *overrides: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    experiment = prepare(scenario, engine="flow", overrides=overrides).experiments[0]
    FlowEngine().run(experiment, Path(), messages.append)
    return messages


def test_a_run_is_announced_before_its_first_event() -> None:
    first = told("hello")[0]
    assert (first["phase"], first["value"], first["note"]) == ("compute", 0.0, "0.0 s simulated")


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [("spread", ()), ("clos96-2to1", ("measure.iterations=2",)), ("hello", ("jobs.small.start=3s",))],
)
def test_there_is_a_time_left_from_the_second_message_on(scenario: str, overrides: tuple[str, ...]) -> None:
    messages = told(scenario, *overrides)
    assert len(messages) > 1
    assert all(remaining(1.0, each["value"], each["total"]) is not None for each in messages[1:])


def test_shares_grow_and_come_near_the_whole() -> None:
    values = [each["value"] / each["total"] for each in told("clos96-2to1")]
    assert values[-1] > 0.9 and max(values) < 1.0
    assert all(later >= earlier - 0.1 for earlier, later in pairwise(values))


def test_under_a_manager_it_is_the_jobs_that_have_ended() -> None:
    assert {each["total"] for each in told("arrivals")} == {15}
