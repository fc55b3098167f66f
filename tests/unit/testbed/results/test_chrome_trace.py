"""What timeline.json must be for Perfetto and chrome://tracing, and what it tells."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.api import run_scenario
from testbed.results import chrome_trace
from testbed.results.chrome_trace import host_and_index, natural, trace_events
from testbed.results.record import DecisionRow, LinkRow
from testbed.results.run_directory import RunDirectory

PHASES = {"M", "X", "C", "i", "s", "f"}


def timeline_of(scenario: str, out: Path) -> list[dict]:
    directory = run_scenario(scenario, engine="flow", schedulers=["crux"], out=out).directory
    return json.loads((directory / "crux" / "timeline.json").read_text("utf-8"))["traceEvents"]


@pytest.fixture(scope="module", params=["hello", "moe-alltoall", "arrivals"])
def events(request, tmp_path_factory) -> list[dict]:
    """Timelines of real runs: one collective, several with an all-to-all, and jobs under a manager."""
    return timeline_of(request.param, tmp_path_factory.mktemp("runs"))


def slices_by_thread(events):
    by_thread = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    return {thread: sorted(spans) for thread, spans in by_thread.items()}


def test_every_event_has_what_the_format_asks_for(events):
    assert {event["ph"] for event in events} == PHASES
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"]
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, float) for value in event["args"].values())


def test_slices_of_a_thread_do_not_overlap(events):
    rounding_us = 0.01
    for spans in slices_by_thread(events).values():
        for (_, end), (begin, _) in pairwise(spans):
            assert end <= begin + rounding_us


def test_every_thread_with_slices_and_every_process_has_a_name(events):
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    assert set(slices_by_thread(events)) == threads
    assert {event["pid"] for event in events} == processes


def test_every_arrow_begins_and_ends_in_a_slice_of_its_collective(events):
    slices = {(e["pid"], e["tid"], e["name"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"}
    by_place = defaultdict(list)
    for process, thread, name, begin, end in slices:
        by_place[process, thread, name].append((begin, end))
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys() and starts
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"] and end["bp"] == "e"
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        for event in (start, end):
            spans = by_place[event["pid"], event["tid"], event["name"]]
            assert any(begin <= event["ts"] <= until for begin, until in spans)


def test_loads_are_shares_of_the_rate_and_end_at_nothing(events):
    counters = [event for event in events if event["ph"] == "C"]
    assert all(0 <= event["args"]["load %"] <= 101 for event in counters)
    last = {event["name"]: event["args"]["load %"] for event in counters}
    assert set(last.values()) == {0.0}


def test_the_timeline_has_a_row_per_gpu_in_a_process_per_host(records, experiment):
    events = trace_events(records[1], experiment)["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    hosts = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    gpus = {thread: name for thread, name in threads.items() if "communication" not in name}
    assert sorted(gpus.values()) == sorted(experiment.fabric.gpus)
    assert all(gpu.startswith(hosts[process]) for (process, _), gpu in gpus.items())


def test_the_slices_of_the_timeline_add_up_to_the_rows(records, experiment):
    events = [event for event in trace_events(records[0], experiment)["traceEvents"] if event["ph"] == "X"]
    rows = records[0].iterations
    for cause, column in (("compute", "compute_s"), ("exposed", "exposed_s"), ("straggler", "straggler_s")):
        drawn = sum(event["dur"] for event in events if event["cat"] == cause)
        assert drawn == pytest.approx(1e6 * sum(getattr(row, column) for row in rows))
    assert max(event["ts"] + event["dur"] for event in events) == pytest.approx(1e6 * max(row.end_s for row in rows))


def test_a_collective_takes_as_long_as_its_host_communicated_and_ends_with_the_iteration(records, experiment):
    events = trace_events(records[0], experiment)["traceEvents"]
    rings = [event for event in events if event["ph"] == "X" and event["name"] == "big ring"]
    first = [event for event in rings if event["args"]["iteration"] == 0]
    assert [(event["ts"], event["dur"]) for event in first] == [(pytest.approx(0.9e6), pytest.approx(0.3e6))] * 2
    assert {event["args"]["sent bytes"] for event in first} == {2 * 2.5e9}


def test_arrows_lead_from_each_sender_to_its_receiver(records, experiment):
    events = trace_events(records[0], experiment)["traceEvents"]
    host = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    ends = {event["id"]: host[event["pid"]] for event in events if event["ph"] == "f"}
    pairs = {(host[event["pid"]], ends[event["id"]]) for event in events if event["ph"] == "s"}
    assert pairs == {("h0", "h1"), ("h1", "h0")}


def test_a_counter_holds_from_the_beginning_of_its_sample(records, experiment):
    rows = tuple(
        LinkRow(time, "tor0->agg0", 7, size, 0.0, 0) for time, size in ((1.0, 0.0), (2.0, 12.5e9), (3.0, 12.5e9))
    )
    record = dataclasses.replace(records[0], links=rows)
    events = [event for event in trace_events(record, experiment)["traceEvents"] if event["ph"] == "C"]
    assert [(event["name"], event["ts"], event["args"]) for event in events] == [
        ("tor0->agg0", 0.0, {"load %": 0.0}),
        ("tor0->agg0", 1e6, {"load %": 50.0}),
        ("tor0->agg0", 3e6, {"load %": 0.0}),
    ]


def test_a_queue_is_a_counter_of_the_longest_of_its_levels(records, experiment):
    """Where queues are sampled; nothing waited in the second stretch."""
    rows = (
        LinkRow(1.0, "tor0->agg0", 3, 1e9, 0.0, 0, longest_queue_bytes=2e5),
        LinkRow(1.0, "tor0->agg0", 7, 1e9, 0.0, 0, longest_queue_bytes=3e5, paused_s=0.1),
        LinkRow(2.0, "tor0->agg0", 7, 1e9, 0.0, 0),
    )
    record = dataclasses.replace(records[0], links=rows)
    events = [event for event in trace_events(record, experiment)["traceEvents"] if event["name"].startswith("queue")]
    assert [(event["name"], event["ts"], event["args"]) for event in events] == [
        ("queue tor0->agg0", 0.0, {"longest KB": 300.0}),
        ("queue tor0->agg0", 1e6, {"longest KB": 0.0}),
    ]


def test_decisions_are_marks_in_the_timeline(records, experiment):
    marks = [event for event in trace_events(records[0], experiment)["traceEvents"] if event["ph"] == "i"]
    assert [(mark["name"], mark["ts"]) for mark in marks] == [("arrival of big", 0.0)]


def test_a_timeline_that_is_too_long_ends_early_and_says_so(records, experiment, monkeypatch):
    limits = {"GPU_EVENTS": 50, "COMMUNICATION_EVENTS": 30, "COUNTER_EVENTS": 4, "DECISION_EVENTS": 1}
    for name, limit in limits.items():
        monkeypatch.setattr(chrome_trace, name, limit)
    twice = dataclasses.replace(
        records[0], decisions=(*records[0].decisions, DecisionRow(2.5, "timer", records[0].decisions[0].decision))
    )
    document = trace_events(twice, experiment)
    kinds = [event["ph"] for event in document["traceEvents"]]
    assert (kinds.count("C"), kinds.count("i")) == (4, 1)
    assert kinds.count("X") + kinds.count("s") + kinds.count("f") <= 80
    assert document["otherData"]["decisions left out"] == "from 2.5 s on"
    assert {"GPUs left out", "communication left out", "load of links left out"} < set(document["otherData"])


def test_a_run_without_rows_has_a_timeline(records, experiment):
    empty = dataclasses.replace(records[0], iterations=(), links=(), decisions=())
    assert all(event["ph"] == "M" for event in trace_events(empty, experiment)["traceEvents"])


def test_gpu_names_sort_as_people_count():
    assert sorted(["h10g0", "h2g11", "h2g2"], key=natural) == ["h2g2", "h2g11", "h10g0"]
    assert host_and_index("h10g3") == ("h10", 3)
    assert host_and_index("node-a") == ("node-a", 0)


@pytest.mark.parametrize(
    "name",
    [
        "h" + "9" * 5000 + "g0",
        "h0g" + "9" * 5000,
        "h²g²",
        "h\N{ARABIC-INDIC DIGIT ONE}g\N{ARABIC-INDIC DIGIT ONE}",
        "",
        "007",
    ],
)
def test_any_name_can_be_sorted_and_split(name):
    assert natural(name) >= ()
    assert isinstance(host_and_index(name)[1], int)


def test_a_written_timeline_is_the_one_of_the_record(write_run, records, experiment):
    directory = write_run(*records)
    text = (directory.path / "crux" / "timeline.json").read_text("utf-8")
    assert json.loads(text) == json.loads(json.dumps(trace_events(records[1], experiment)))
    assert RunDirectory.open(directory.path).changed() == ()
