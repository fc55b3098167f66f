from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decision import Decision
from controller.service.json_codec import decision_from_json, encode, fabric_from_json, job_from_json, to_json
from topologies.fabric import Fabric
from workloads.job import Flow, Job, Phase, Straggler, Transfer

names = st.text("abcxyz019/:", min_size=1, max_size=6)
sizes = st.floats(0, 1e15)
ports = st.integers(1, 65535)
decisions = st.builds(
    Decision,
    paths=st.dictionaries(names, st.lists(names).map(tuple)),
    levels=st.dictionaries(names, st.integers(0, 7)),
    rates=st.dictionaries(names, sizes),
    shifts=st.dictionaries(names, sizes),
    notes=st.dictionaries(names, st.dictionaries(names, sizes)),
    hashed=st.lists(names).map(tuple),
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    name = draw(names)
    ends = st.lists(names, min_size=2, max_size=2, unique=True)
    built = st.builds(lambda flow, ends, *rest: Flow(flow, name, *ends, *rest), names, ends, sizes, ports, ports)
    own = tuple(draw(st.lists(built, min_size=1, max_size=3, unique_by=lambda flow: flow.id)))
    ids = st.sampled_from([flow.id for flow in own])
    transfers = st.lists(st.builds(Transfer, ids, sizes, st.none() | ids, sizes), max_size=3).map(tuple)
    phases = draw(st.lists(st.builds(Phase, sizes, st.floats(0, 1), names, transfers), max_size=3))
    stragglers = draw(st.lists(st.builds(Straggler, names, st.floats(1, 5)), max_size=2))
    gpus = tuple(draw(st.lists(names, unique=True)))
    return Job(name, "gpt", gpus, tuple(phases), own, draw(sizes), 5, stragglers=tuple(stragglers))


@given(jobs())
def test_a_job_survives_the_wire(job: Job) -> None:
    assert job_from_json(json.loads(to_json(job))) == job


@given(decisions)
def test_a_decision_survives_the_wire(decision: Decision) -> None:
    assert decision_from_json(json.loads(to_json(decision))) == decision


def test_a_fabric_survives_the_wire_with_its_order(any_fabric: Fabric) -> None:
    received = fabric_from_json(json.loads(json.dumps(encode(any_fabric))))
    assert received == any_fabric
    assert list(received.links) == list(any_fabric.links)


def job_json(make_ring: Callable[..., Job], fabric: Fabric) -> dict[str, object]:
    sent: dict[str, object] = json.loads(to_json(make_ring("a", fabric, [0, 2])))
    return sent


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1}, "job: unknown key 'speed', expected name, model, gpus"),
        ({"flops": "many"}, "job.flops: expected a number, not a string"),
        ({"iterations": 1.5}, "job.iterations: expected a whole number, not a number"),
        ({"iterations": True}, "job.iterations: expected a whole number, not true or false"),
        ({"flops": float("inf")}, "job.flops: expected a finite number, not inf"),
        ({"flows": {}}, "job.flows: expected an array, not an object"),
        ({"flows": [3]}, "job.flows[0]: expected an object, not a whole number"),
        ({"flows": []}, "job.phases[0]: transfer names unknown flow 'a/0/0'"),
    ],
)
def test_a_wrong_job_is_told_where_and_what(
    small_fabric: Fabric, make_ring: Callable[..., Job], change: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        job_from_json({**job_json(make_ring, small_fabric), **change})
    assert str(caught.value).startswith(message)


def test_a_missing_key_is_named(small_fabric: Fabric, make_ring: Callable[..., Job]) -> None:
    sent = job_json(make_ring, small_fabric)
    del sent["flops"]
    with pytest.raises(ValueError, match=r"^job: key 'flops' is missing$"):
        job_from_json(sent)


def test_a_fabric_with_a_loose_cable_is_refused(small_fabric: Fabric) -> None:
    sent = encode(small_fabric)
    sent["links"]["tor0->agg0"]["reverse"] = "nowhere"
    with pytest.raises(ValueError, match=r"fabric\.links\.tor0->agg0: reverse 'nowhere' is no link"):
        fabric_from_json(sent)
