"""Lingjun: the trace that Crux studied (SIGCOMM'24; ``alibaba/alibaba-lingjun-dataset-2023``, Apache-2.0).

A folder with ``job.csv``, ``worker.csv`` and perhaps ``topo.csv``. A job's GPUs are those of its
workers (``nvidia.com/gpu`` in their ``RES``). Times have a resolution of a minute.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from topologies.generators.lingjun import read_topology
from topologies.limits import TRACE_NUMBER
from topologies.table import Row, read_rows
from workloads.traces.gathering import (
    NEVER_RAN,
    NO_END,
    NO_GPUS,
    OTHER_STATE,
    RAN_BEFORE,
    STILL_RUNNING,
    Gathering,
)
from workloads.traces.trace import Trace

JOB_COLUMNS: Final = ("job_name", "status", "gmt_job_submitted", "gmt_job_running", "gmt_job_finished")
WORKER_COLUMNS: Final = ("job_name", "worker_name", "host_ip", "RES")
GPU: Final = "nvidia.com/gpu"

FATE: Final[Mapping[str, str]] = {"Succeeded": "pass", "Stopped": "kill", "Failed": "fail"}
WITHIN_A_MINUTE_S: Final = 30.0
"""How long a job ran that began and ended in the same minute: half the resolution, an assumption."""

NO_JOB: Final = "worker of a job that job.csv does not name"


@dataclass(slots=True)
class _Workers:
    """GPUs and hosts by worker of one job: a worker that was started again counts once, as it was last."""

    gpus: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    rows: int = 0


def read(path: Path) -> Trace:
    """Read the folder ``path``; raises :class:`TraceError` for what is missing or damaged."""
    found = Gathering(path)
    workers = _workers(path / "worker.csv", found)
    known: set[str] = set()
    short = 0
    for row in read_rows(path / "job.csv", JOB_COLUMNS, found.skipped):
        known.add(row.text("job_name"))
        short += _add(row, workers.get(row.text("job_name"), _Workers()), found)
    for name, group in workers.items():
        if name not in known:
            found.skipped[NO_JOB] += group.rows
    if short:
        found.notes.append(f"{short} jobs began and ended within a minute: {WITHIN_A_MINUTE_S:g} s assumed")
    if (path / "topo.csv").exists():
        found.notes.append(_outside(path / "topo.csv", workers))
    return found.trace("lingjun")


def _workers(path: Path, found: Gathering) -> dict[str, _Workers]:
    workers: dict[str, _Workers] = {}
    for row in read_rows(path, WORKER_COLUMNS, found.skipped):
        group = workers.setdefault(row.text("job_name"), _Workers())
        name = row.text("worker_name") or f"line-{row.line}"
        group.gpus[name] = _gpus(row)
        group.hosts[name] = row.text("host_ip")
        group.rows += 1
    return workers


def _gpus(row: Row) -> int:
    said = row.text("RES")
    if not said:
        return 0
    try:
        count = json.loads(said).get(GPU, 0)
        number = math.nan if isinstance(count, bool) or "_" in str(count) else float(count)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        row.fail("RES is no JSON with numbers", f'an object such as {{"{GPU}": 8}}')
    if not (number.is_integer() and 0 <= number <= TRACE_NUMBER):
        row.fail(f"RES has {GPU} {count}", f"a whole number of GPUs, 0 to {TRACE_NUMBER:g}")
    return int(number)


def _add(row: Row, workers: _Workers, found: Gathering) -> bool:
    """Add the job or count why not; whether its run time had to be assumed."""
    gpus = sum(workers.gpus.values())
    submitted, began = row.time("gmt_job_submitted"), row.time("gmt_job_running")
    finished = row.time("gmt_job_finished")
    ended = row.time("gmt_job_stopped") if finished is None else finished
    reason = _unusable(row.text("status"), gpus, submitted, began, ended)
    if reason or began is None or ended is None:
        found.skip(reason)
        return False
    restarts = row.count("job_restart_times")
    found.add(
        row.text("job_name") or f"line-{row.line}",
        submitted,
        ended - began or WITHIN_A_MINUTE_S,
        gpus,
        model="" if row.text("model") == "unknown" else row.text("model"),
        user=row.text("user_id"),
        virtual_cluster=row.text("workspace_name") or row.text("workspace_id"),
        fate=FATE[row.text("status")],
        hosts=tuple(dict.fromkeys(host for name, host in workers.hosts.items() if host and workers.gpus[name])),
        attempts=1 + (restarts or 0),
    )
    return ended == began


def _unusable(status: str, gpus: int, submitted: float | None, began: float | None, ended: float | None) -> str:
    if status == "Running":
        return STILL_RUNNING
    if status not in FATE:
        return OTHER_STATE
    if gpus < 1:
        return NO_GPUS
    if began is None:
        return NEVER_RAN
    if submitted is not None and began < submitted:
        return RAN_BEFORE
    return NO_END if ended is None else ""


def _outside(topology: Path, workers: Mapping[str, _Workers]) -> str:
    listed = {host.ip for host in read_topology(topology)}
    hosts = [host for group in workers.values() for host in group.hosts.values() if host]
    outside = sum(host not in listed for host in hosts)
    return f"{outside} of {len(hosts)} workers ran on hosts that topo.csv does not list"
