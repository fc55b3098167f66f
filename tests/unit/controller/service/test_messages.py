"""Requests and answers survive the wire, with the keys that are documented."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.dataplane.planner import FlowChange
from controller.dataplane.rules import Actions, Match
from controller.decision import Decision, Measured
from controller.service import messages
from controller.service.json_codec import decode, encode
from controller.service.messages import (
    Answer,
    CommitAnswer,
    CommitRequest,
    CountedRule,
    DecisionAnswer,
    ErrorAnswer,
    FabricAnswer,
    JobRequest,
    ObservedPathsAnswer,
    ProfileRequest,
    RulesAnswer,
    StateAnswer,
    TakenAnswer,
    ThroughputAnswer,
    VerificationAnswer,
)
from topologies.fabric import Fabric
from workloads.job import Job

names = st.text("abcxyz019/:", min_size=1, max_size=6)
counts = st.integers(0, 2**62)
seconds = st.floats(0, 1e6)
paths = st.lists(names, max_size=4).map(tuple)
several = st.lists(names, max_size=3).map(tuple)
matches = st.builds(Match, names, names, counts, counts, st.none() | counts)
actions = st.builds(Actions, st.none() | counts, st.none() | names, st.none() | counts, st.none() | counts)
decisions = st.builds(
    Decision,
    paths=st.dictionaries(names, paths, max_size=3),
    levels=st.dictionaries(names, st.integers(0, 7), max_size=3),
    shifts=st.dictionaries(names, seconds, max_size=3),
    hashed=several,
)
rules = st.builds(CountedRule, names, counts, matches, actions, counts, counts)
observed = st.dictionaries(names, st.none() | paths, max_size=3)
answers = st.one_of(
    st.builds(FabricAnswer, names, counts),
    st.builds(
        StateAnswer,
        names,
        st.none() | names,
        st.dictionaries(names, st.booleans(), max_size=3),
        counts,
        several,
        st.none() | decisions,
        several,
    ),
    st.builds(
        DecisionAnswer,
        decisions,
        st.lists(st.builds(FlowChange, names, st.booleans(), st.booleans()), max_size=3).map(tuple),
        st.booleans(),
        seconds,
        seconds,
    ),
    st.builds(CommitAnswer, st.booleans(), seconds),
    st.builds(ThroughputAnswer, st.dictionaries(names, seconds, max_size=3)),
    st.builds(RulesAnswer, st.dictionaries(names, st.lists(rules, max_size=2).map(tuple), max_size=2)),
    st.builds(
        VerificationAnswer, several, counts, st.dictionaries(names, st.lists(counts, max_size=4).map(tuple), max_size=3)
    ),
    st.builds(ObservedPathsAnswer, observed),
    st.builds(TakenAnswer, observed),
    st.builds(ErrorAnswer, names),
)


def sent(value: object) -> Any:
    """What the other side parses."""
    return json.loads(json.dumps(encode(value)))


@given(answers)
def test_an_answer_survives_the_wire(answer: Answer) -> None:
    assert decode(type(answer), sent(answer), "answer") == answer


def test_a_job_request_survives_the_wire(small_fabric: Fabric, make_ring: Callable[..., Job]) -> None:
    request = JobRequest(make_ring("a", small_fabric, [0, 2]), "prepare")
    assert messages.job_request_from_json(sent(request)) == request


def test_a_profile_and_a_commit_survive_the_wire() -> None:
    profile = ProfileRequest("a", Measured(flops=1e12, communication_s=0.5, iteration_s=2.0), "prepare")
    assert messages.profile_request_from_json(sent(profile)) == profile
    commit = CommitRequest(("a/0", "a/1"))
    assert messages.commit_request_from_json(sent(commit)) == commit


def test_who_does_not_say_when_flows_move_means_now(small_fabric: Fabric, make_ring: Callable[..., Job]) -> None:
    body = {"job": sent(make_ring("a", small_fabric, [0, 2]))}
    assert messages.job_request_from_json(body).apply == "now"


def test_answers_have_the_documented_keys() -> None:
    rule = CountedRule("tor0", 100, Match("10.0.1.1", "10.0.3.1", 1, 2), Actions(output=3), 7, 5)
    assert sent(RulesAnswer({"tor0": (rule,)})) == {
        "rules": {
            "tor0": [
                {
                    "switch": "tor0",
                    "priority": 100,
                    "match": {
                        "source": "10.0.1.1",
                        "target": "10.0.3.1",
                        "source_port": 1,
                        "target_port": 2,
                        "in_port": None,
                    },
                    "actions": {"dscp": None, "eth_dst": None, "output": 3, "group": None},
                    "cookie": 7,
                    "packets": 5,
                }
            ]
        }
    }
    answer = DecisionAnswer(Decision(levels={"a": 0}), (FlowChange("b/1", True, False),), True, 0.003, 0.021)
    assert sent(answer).keys() == {"decision", "changes", "confirmed", "decided_s", "elapsed_s"}
    assert sent(answer)["changes"] == [{"flow": "b/1", "path_changed": True, "level_changed": False}]
    assert sent(VerificationAnswer((), 4, {"a/0": (1, 1)})) == {
        "mismatches": [],
        "rules": 4,
        "packets": {"a/0": [1, 1]},
    }
    state = StateAnswer("ecmp", None, {}, 0, (), None, ())
    assert sent(state).keys() == {"scheduler", "fabric", "switches", "expected", "jobs", "decision", "pending"}


@pytest.mark.parametrize(("old", "new"), [("/check", "/verification"), ("/taken", "/observed-paths")])
def test_each_deprecated_route_has_a_new_name(old: str, new: str) -> None:
    assert messages.RENAMED_ROUTES[old] == new
