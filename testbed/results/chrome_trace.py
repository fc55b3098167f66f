"""The timeline of a run as Chrome trace events; opens in Perfetto or chrome://tracing.

A process per host, with a thread per GPU and one per job for its communication; a process for the load of links; all
in undilated microseconds. A record knows how long an iteration computed, waited for a peer and waited for its
communication, not in which interleaving: the three are drawn one after the other, in that order.

The size is bounded: what happens after so many events is left out, and ``otherData`` says from when on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow, RunRecord
from testbed.results.trace.communication import Communication
from testbed.results.trace.counters import COUNTED_LINKS, link_counters, queue_counters
from testbed.results.trace.events import (
    CONTROLLER,
    Event,
    Processes,
    Room,
    host_and_index,
    micro,
    named,
    natural,
)

CAUSES: Final = ("compute", "straggler", "exposed")
GPU_EVENTS: Final = 200_000
"""Most slices of GPUs; at 160 bytes each, 32 MB."""
COMMUNICATION_EVENTS: Final = 60_000
COUNTER_EVENTS: Final = 60_000
DECISION_EVENTS: Final = 20_000
_COLORS: Final = {"compute": "thread_state_running", "straggler": "yellow", "exposed": "terrible"}

__all__ = ["CAUSES", "host_and_index", "natural", "slices", "trace_events"]


def slices(row: IterationRow) -> Iterator[tuple[str, float, float]]:
    """(cause, start in s, duration in s) of one iteration, empty ones left out."""
    start = row.start_s
    for cause, duration in (("compute", row.compute_s), ("straggler", row.straggler_s), ("exposed", row.exposed_s)):
        if duration > 0:
            yield cause, start, duration
            start += duration


def trace_events(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    """The document to write as ``timeline.json``."""
    gpus = sorted({row.gpu for row in record.iterations}, key=natural)
    hosts = list(dict.fromkeys(host_and_index(gpu)[0] for gpu in gpus))
    processes = Processes({host: number for number, host in enumerate(hosts, start=1)})
    rooms = {
        "GPUs": Room(GPU_EVENTS),
        "communication": Room(COMMUNICATION_EVENTS),
        "load of links": Room(COUNTER_EVENTS),
        "queues": Room(COUNTER_EVENTS),
        "decisions": Room(DECISION_EVENTS),
    }
    rows = sorted(record.iterations, key=lambda row: row.start_s)
    communication = Communication(record, experiment, processes)
    events = [*_names(record, gpus, processes), *communication.names()]
    for row in rows:
        events += rooms["GPUs"].take(row.start_s, _iteration(row, processes.hosts))
    events += communication.events(rows, rooms["communication"])
    events += link_counters(record.links, experiment.fabric, processes.network, rooms["load of links"])
    events += queue_counters(record.links, processes.network, rooms["queues"])
    for decision in record.decisions:
        events += rooms["decisions"].take(decision.time_s, [_decision(decision.time_s, decision.cause)])
    about = {"scheduler": record.scheduler, "load of links": f"the {COUNTED_LINKS} busiest links at most"}
    left_out = {
        f"{what} left out": f"from {room.from_s:.6g} s on" for what, room in rooms.items() if room.from_s is not None
    }
    return {"displayTimeUnit": "ms", "otherData": about | left_out, "traceEvents": events}


def _names(record: RunRecord, gpus: list[str], processes: Processes) -> Iterator[Event]:
    yield named("process_name", f"controller ({record.scheduler})", CONTROLLER)
    for host, process in processes.hosts.items():
        yield named("process_name", host, process)
    for gpu in gpus:
        host, index = host_and_index(gpu)
        yield named("thread_name", gpu, processes.hosts[host], index + 1)
    yield named("process_name", "load of links", processes.network)


def _iteration(row: IterationRow, process: Mapping[str, int]) -> Iterator[Event]:
    host, index = host_and_index(row.gpu)
    place = {"pid": process[host], "tid": index + 1}
    arguments = {"job": row.job, "iteration": row.iteration, "disturbed": row.disturbed}
    for cause, start, duration in slices(row):
        yield {
            "ph": "X",
            "name": f"{row.job} {cause}",
            "cat": cause,
            "cname": _COLORS[cause],
            "ts": micro(start),
            "dur": micro(duration),
            **place,
            "args": arguments,
        }


def _decision(time_s: float, cause: str) -> Event:
    return {"ph": "i", "name": cause, "cat": "decision", "s": "g", "ts": micro(time_s), "pid": CONTROLLER, "tid": 0}
