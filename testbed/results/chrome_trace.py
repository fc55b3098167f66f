"""The timeline of a run as Chrome trace events, a row per GPU; opens in Perfetto or chrome://tracing.

A process per host, a thread per GPU; slices in undilated microseconds. A record knows how long an
iteration computed, waited for a peer and waited for its communication, not in which interleaving:
the three are drawn one after the other, in that order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from testbed.results.record import IterationRow, RunRecord

CAUSES: Final = ("compute", "straggler", "exposed")
_COLORS: Final = {"compute": "thread_state_running", "straggler": "yellow", "exposed": "terrible"}
_GPU_NAME: Final = re.compile(r"^(?P<host>.*?)g(?P<index>\d+)$")
_CONTROLLER: Final = 0

Event = dict[str, Any]


def host_and_index(gpu: str) -> tuple[str, int]:
    """``h3g5`` -> ``("h3", 5)``; a name of another form is a host of its own."""
    match = _GPU_NAME.match(gpu)
    return (match["host"], int(match["index"])) if match else (gpu, 0)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts ``h10g0`` after ``h2g0``."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def slices(row: IterationRow) -> Iterator[tuple[str, float, float]]:
    """(cause, start in s, duration in s) of one iteration, empty ones left out."""
    start = row.start_s
    for cause, duration in (("compute", row.compute_s), ("straggler", row.straggler_s), ("exposed", row.exposed_s)):
        if duration > 0:
            yield cause, start, duration
            start += duration


def trace_events(record: RunRecord) -> dict[str, Any]:
    """The document to write as ``timeline.json``."""
    gpus = sorted({row.gpu for row in record.iterations}, key=natural)
    hosts = list(dict.fromkeys(host_and_index(gpu)[0] for gpu in gpus))
    process = {host: number for number, host in enumerate(hosts, start=1)}
    rows = [_name("process_name", f"controller ({record.scheduler})", _CONTROLLER, 0)]
    rows += [_name("process_name", host, process[host], 0) for host in hosts]
    rows += [_name("thread_name", gpu, process[host_and_index(gpu)[0]], host_and_index(gpu)[1] + 1) for gpu in gpus]
    rows += [event for row in record.iterations for event in _iteration(row, process)]
    rows += [_decision(row.time_s, row.cause) for row in record.decisions]
    return {"displayTimeUnit": "ms", "otherData": {"scheduler": record.scheduler}, "traceEvents": rows}


def _name(kind: str, name: str, process: int, thread: int) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _iteration(row: IterationRow, process: dict[str, int]) -> Iterator[Event]:
    host, index = host_and_index(row.gpu)
    place = {"pid": process[host], "tid": index + 1}
    arguments = {"job": row.job, "iteration": row.iteration, "disturbed": row.disturbed}
    for cause, start, duration in slices(row):
        yield {
            "ph": "X",
            "name": f"{row.job} {cause}",
            "cat": cause,
            "cname": _COLORS[cause],
            "ts": _micro(start),
            "dur": _micro(duration),
            **place,
            "args": arguments,
        }


def _decision(time_s: float, cause: str) -> Event:
    return {"ph": "i", "name": cause, "cat": "decision", "s": "g", "ts": _micro(time_s), "pid": _CONTROLLER, "tid": 0}
