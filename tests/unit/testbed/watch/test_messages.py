from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.watch.messages import JobState, LinkLoad, LiveSample, message_of, read_sample

JOB = JobState("big", 4, "running", 0, 3, 5, 0.75)
SAMPLE = LiveSample(12.5, 0.75, (JOB, JobState("late", 8, "waiting", None, 0, 5, None)), (3, 0, 950, 7, 6, 20))


@pytest.mark.parametrize("routes", [None, {"big": (3, 7), "late": ()}])
def test_a_sample_arrives_as_it_was_sent(routes: dict[str, tuple[int, ...]] | None) -> None:
    sample = LiveSample(SAMPLE.time_s, None, SAMPLE.jobs, SAMPLE.loads, routes)
    assert read_sample(json.loads(json.dumps(message_of(sample)))) == sample


def test_loads_are_triples_of_link_level_and_share() -> None:
    assert list(SAMPLE.link_loads()) == [LinkLoad(3, 0, 0.95), LinkLoad(7, 6, 0.02)]


@pytest.mark.parametrize(
    "change",
    [
        {"loads": [1, 2]},
        {"loads": [1, 2, -3]},
        {"loads": [1, 2, 0.5]},
        {"jobs": [{"name": "big"}]},
        {"time_s": "now"},
        {"more": 1},
    ],
)
def test_what_is_no_sample_is_refused_in_one_line(change: dict[str, Any]) -> None:
    message = message_of(SAMPLE)
    with pytest.raises(ValueError, match=r"^sample[^\n]+$"):
        read_sample({"sample": {**message["sample"], **change}})


def test_a_message_without_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="sample: expected an object"):
        read_sample({"phase": "live"})
