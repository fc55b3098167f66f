"""A summary of schema version 1 is read with the keys of today."""

from __future__ import annotations

import copy
import json
from typing import Any

from testbed.metrics.old_keys import upgrade_summary

SCHEMA_1: dict[str, Any] = {
    "schema_version": 1,
    "scenario": "s",
    "runs": [
        {
            "scheduler": "crux",
            "jobs": [{"name": "gpt", "jct_s": 3.0, "jct_is": "measured", "moves": 2, "status": "passed"}],
            "manager": {"preemptions": 1.0, "moves": 2.0, "refused": {"moves": "too large"}},
        },
        {"scheduler": "ecmp", "jobs": [{"name": "gpt", "jct_s": 3.0, "jct_is": "projected"}]},
    ],
    "comparison": {"baseline": "crux"},
}


def test_keys_of_schema_1_become_those_of_today_in_their_places() -> None:
    managed, plain = upgrade_summary(SCHEMA_1)["runs"]
    assert list(managed["jobs"][0]) == ["name", "jct_s", "jct_source", "migrations", "status"]
    assert managed["jobs"][0]["jct_source"] == "measured"
    assert list(managed["manager"]) == ["preemptions", "migrations", "refused"]
    assert plain == {"scheduler": "ecmp", "jobs": [{"name": "gpt", "jct_s": 3.0, "jct_source": "projected"}]}


def test_a_job_that_is_called_like_an_old_key_keeps_its_name() -> None:
    assert upgrade_summary(SCHEMA_1)["runs"][0]["manager"]["refused"] == {"moves": "too large"}


def test_all_else_stays_and_the_document_itself_does_not_change() -> None:
    before = copy.deepcopy(SCHEMA_1)
    upgraded = upgrade_summary(SCHEMA_1)
    assert before == SCHEMA_1
    assert list(upgraded) == list(SCHEMA_1)
    assert {**upgraded, "runs": []} == {**SCHEMA_1, "runs": []}


def test_a_summary_of_today_comes_back_equal() -> None:
    today = upgrade_summary(SCHEMA_1)
    assert json.dumps(upgrade_summary(today)) == json.dumps(today)


def test_a_damaged_summary_is_left_to_its_reader() -> None:
    assert upgrade_summary({"runs": 3}) == {"runs": 3}
    assert upgrade_summary({"runs": [1, {"jobs": 2, "manager": None}]}) == {"runs": [1, {"jobs": 2, "manager": None}]}
