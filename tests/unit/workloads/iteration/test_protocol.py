"""Messages between engine and workers: each survives the wire, whose form is fixed, and what is none is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.byte_windows import ByteWindows
from workloads.iteration.job_plan import IncomingMessage, JobPlan, OutgoingMessage, PhasePlan, PlannedConnection
from workloads.iteration.protocol import (
    COMMANDS,
    EVENTS,
    Answer,
    AssignPcieTurns,
    Closed,
    Command,
    Event,
    HaltJob,
    IterationEnded,
    PhaseTimes,
    SetUpJob,
    ShapeFlows,
    ShiftJob,
    decode_command,
    decode_event,
    encode_command,
    encode_event,
    event_name,
)
from workloads.iteration.time_shift import TimeShift
from workloads.job import Straggler

SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=6),
    int: st.integers(-(2**40), 2**40),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of the annotated type ``kind``."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(values(parts[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, parts))
    if origin is Mapping:
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=3)
    if origin is Literal:
        return st.sampled_from(parts)
    return st.one_of(*map(values, parts))


@pytest.mark.parametrize("kind", COMMANDS.values())
@given(host=st.text(max_size=6), data=st.data())
def test_every_command_survives_the_wire_with_its_host(kind: type[Command], host: str, data: st.DataObject) -> None:
    command = data.draw(values(kind))
    line = encode_command(host, command)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    named, decoded = decode_command(line)
    assert (named, type(decoded), decoded) == (host, kind, command)


@pytest.mark.parametrize("kind", EVENTS.values())
@given(host=st.text(max_size=6), data=st.data())
def test_every_event_survives_the_wire_with_its_host(kind: type[Event], host: str, data: st.DataObject) -> None:
    event = data.draw(values(kind))
    line = encode_event(host, event)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    named, decoded = decode_event(line)
    assert (named, type(decoded), decoded) == (host, kind, event)


def test_no_message_has_a_field_that_the_envelope_uses() -> None:
    for kind in (*COMMANDS.values(), *EVENTS.values()):
        assert {field.name for field in fields(kind)}.isdisjoint({"host", "op", "event"})


def test_the_tables_name_every_message_once() -> None:
    assert set(COMMANDS.values()) == set(get_args(Command)) and len(COMMANDS) == len(get_args(Command))
    assert set(EVENTS.values()) == set(get_args(Event)) and len(EVENTS) == len(get_args(Event))
    assert [event_name(kind) for kind in get_args(Answer)][:2] == ["ready", "listening"]


def test_messages_of_equal_content_differ_by_what_they_say() -> None:
    named = {str(kind("a")) for table in (COMMANDS, EVENTS) for kind in table.values() if takes_only_a_job(kind)}
    assert len(named) == 6
    assert HaltJob("a") != COMMANDS["connect"]("a")  # type: ignore[call-arg]


def takes_only_a_job(kind: Any) -> bool:
    return [field.name for field in fields(kind) if field.default is MISSING] == ["job"]


def test_the_form_of_commands_on_the_wire() -> None:
    assert encode_command("h0", HaltJob("a")) == b'{"host":"h0","op":"halt","job":"a"}\n'
    assert (
        encode_command("h0", ShapeFlows(1.5, {"a": 32}, {"f": 64}, {"f": None}))
        == b'{"host":"h0","op":"shape","caused_at":1.5,"job_tos":{"a":32},"flow_tos":{"f":64},"rates":{"f":null}}\n'
    )
    assert (
        encode_command("h0", AssignPcieTurns({"f": ("h0s0->h0n0", 2)}))
        == b'{"host":"h0","op":"pcie-turns","flows":{"f":["h0s0->h0n0",2]}}\n'
    )
    assert (
        encode_command("h0", ShiftJob("a", TimeShift(9.0, 0.5, 2.0)))
        == b'{"host":"h0","op":"shift","job":"a","time_shift":{"anchor":9.0,"shift":0.5,"period":2.0}}\n'
    )


def test_the_form_of_a_plan_on_the_wire() -> None:
    phase = PhasePlan(0.2, 0.5, (OutgoingMessage("f", 1000, "g", 500),), (IncomingMessage("g", 1000),), 0.0, True)
    ends = PlannedConnection("f", "10.0.0.1", 4000, "10.0.0.2", 5000, "h0")
    plan = JobPlan(
        name="a",
        seed=1,
        iterations=3,
        time_scale=2.0,
        jitter=0.0,
        stragglers=(Straggler("h0g0", 1.5),),
        gpus=("h0g0",),
        phases=(phase,),
        outgoing=(ends,),
        incoming=(),
        window=8,
        slice_size=2,
        departure=0.01,
        link_rate=1e6,
        tos={"f": 32},
        byte_marks={"f": ByteMarks(True, (10,), (0, 32))},
        byte_windows={"f": ByteWindows(20, (8, 16))},
        draws=("4",),
    )
    assert encode_command("h0", SetUpJob(plan)).decode() == (
        '{"host":"h0","op":"job","plan":{"name":"a","seed":1,"iterations":3,"time_scale":2.0,"jitter":0.0,'
        '"stragglers":[{"gpu":"h0g0","factor":1.5}],"gpus":["h0g0"],'
        '"phases":[{"compute_s":0.2,"overlap":0.5,"out":[{"flow":"f","size":1000,"after":"g","lead":500}],'
        '"into":[{"flow":"g","size":1000}],"inside_s":0.0,"background":true,"detached":false,"number":-1,"requests":[]}],'
        '"outgoing":[{"flow":"f","source":"10.0.0.1","source_port":4000,"target":"10.0.0.2","target_port":5000,'
        '"peer":"h0"}],"incoming":[],"window":8,"slice_size":2,"departure":0.01,"link_rate":1000000.0,'
        '"tos":{"f":32},"byte_marks":{"f":{"left":true,"thresholds":[10],"marks":[0,32]}},'
        '"byte_windows":{"f":{"period":20,"windows":[8,16]}},"steps":false,"draws":["4"],'
        '"first_iteration":0}}\n'
    )


def test_the_form_of_events_on_the_wire() -> None:
    assert encode_event("h0", Closed("a", 2)) == b'{"host":"h0","event":"closed","job":"a","retransmits":2}\n'
    assert encode_event(
        "h0", IterationEnded("a", 4, (PhaseTimes(1.0, 2.0, 2.5, 3.0, (1.0, 1.5), (2.4,)),), 0.001, 0.0)
    ) == (
        b'{"host":"h0","event":"iteration","job":"a","iteration":4,"phases":[{"start":1.0,"ready":2.0,"communication_end":2.5,'
        b'"end":3.0,"compute":[1.0,1.5],"arrivals":[2.4],"number":-1}],"late":0.001,"waited":0.0}\n'
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"op":"dance"}', "unknown op 'dance', expected one of job, connect, start"),
        (b'{"job":"a"}', "unknown op None"),
        (b'{"op":"ready"}', "unknown op 'ready'"),
        (b'{"op":"halt","job":"a"}', "op 'halt': host None, expected the name of a host"),
        (b'{"host":"h0","op":"halt"}', r"op 'halt': .*missing 1 required positional argument: 'job'"),
        (b'{"host":"h0","op":"halt","job":"a","at":1.0}', r"op 'halt': .*unexpected keyword argument 'at'"),
    ],
)
def test_what_is_no_command_is_refused_by_its_name(line: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_command(line)


def test_what_is_no_event_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="unknown event 'halt', expected one of ready, listening"):
        decode_event(b'{"event":"halt","job":"a"}')
