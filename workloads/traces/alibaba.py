"""Alibaba's GPU traces of 2020 and 2023, read as ``cluster-trace-gpu-v2020`` and ``-v2023`` of ``alibaba/clusterdata``.

v2020 (PAI; Weng et al., NSDI'22): tables without headers. ``pai_task_table.csv`` is needed;
``pai_job_table.csv`` adds users and submissions, ``pai_group_tag_table.csv`` workloads. Hosts are only
in the instance table (2 GB), which is not read. v2023 (Weng et al., ATC'23): one list of pods. Columns
and states as the READMEs and header files there list them. Both share GPUs between jobs: parts of a GPU are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from topologies.table import read_rows
from workloads.traces.gathering import (
    ENDED_BEFORE,
    NEVER_RAN,
    OTHER_STATE,
    RAN_BEFORE,
    STILL_RUNNING,
    Gathering,
    bounded,
)
from workloads.traces.trace import Trace

TASKS: Final = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
JOBS: Final = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TAGS: Final = ("inst_id", "user", "gpu_type_spec", "group", "workload")
PODS: Final = ("name", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time", "scheduled_time")

TASK_FILE: Final = "pai_task_table.csv"
_PENDING: Final = {"Running": STILL_RUNNING, "Waiting": NEVER_RAN}
_PODS: Final = {"Succeeded": "pass", "Running": "kill", "Failed": "fail"}
"""A pod that was deleted while it ran has been stopped."""


@dataclass(slots=True)
class _PaiJob:
    """What the three tables record of a job; ``gpus`` of all its tasks, a part of a GPU as a part, if ``known``."""

    gpus: float = 0.0
    known: bool = True
    states: set[str] = field(default_factory=set)
    began: float = math.inf
    ended: float = -math.inf
    submitted: float | None = None
    user: str = ""
    workload: str = ""


def read_v2020(path: Path) -> Trace:
    """Read the folder of the tables, or ``pai_task_table.csv`` alone (then a job is submitted when it starts)."""
    folder = path if path.is_dir() else path.parent
    tasks = path / TASK_FILE if path.is_dir() else path
    found, orphans = Gathering(path), 0
    jobs: dict[str, _PaiJob] = {}
    for row in read_rows(tasks, TASKS, found.skipped, TASKS):
        job = jobs.setdefault(row.text("job_name"), _PaiJob())
        gpus, instances = row.number("plan_gpu"), row.number("inst_num")
        began, ended = row.number("start_time"), row.number("end_time")
        if not gpus:
            continue
        job.known = job.known and instances is not None
        job.gpus = bounded(row, "plan_gpu x inst_num of the job", job.gpus + gpus / 100 * (instances or 0))
        job.states.add(row.text("status"))
        job.began = min(job.began, math.inf if began is None else began)
        job.ended = max(job.ended, -math.inf if ended is None else ended)
    if path.is_dir() and (folder / "pai_job_table.csv").exists():
        orphans = _add_jobs(folder, jobs, found)
    if orphans:
        found.skipped["job without tasks"] += orphans
    parts = sum(job.gpus > 0 and not job.gpus.is_integer() for job in jobs.values())
    for name, job in jobs.items():
        _add_pai(name, job, found)
    found.notes.append(f"parts of GPUs rounded up to whole ones per job: {parts} jobs; hosts are not read")
    return found.trace("alibaba-v2020")


def _add_jobs(folder: Path, jobs: dict[str, _PaiJob], found: Gathering) -> int:
    """Fill in users, submissions and workloads; return how many jobs have no task."""
    tags, file, orphans = {}, folder / "pai_group_tag_table.csv", 0
    if file.exists():
        rows = read_rows(file, TAGS, found.skipped, TAGS)
        tags = {row.text("inst_id"): row.text("workload") for row in rows if row.text("workload")}
    for row in read_rows(folder / "pai_job_table.csv", JOBS, found.skipped, JOBS):
        job = jobs.get(row.text("job_name"))
        if job is None:
            orphans += 1
            continue
        job.submitted, job.user = row.number("start_time"), row.text("user")
        job.workload = tags.get(row.text("inst_id"), "")
    return orphans


def _add_pai(name: str, job: _PaiJob, found: Gathering) -> None:
    other = job.states - {"Terminated", "Failed"}
    began = None if math.isinf(job.began) else job.began
    submitted = began if job.submitted is None else job.submitted
    if job.gpus and other:
        found.skip(_PENDING.get(min(other), OTHER_STATE))
    elif job.gpus and began is None:
        found.skip(NEVER_RAN)
    elif job.gpus and began is not None and submitted is not None and began < submitted:
        found.skip(RAN_BEFORE)
    else:
        duration = None if began is None or math.isinf(job.ended) else job.ended - began
        fate = "fail" if "Failed" in job.states else "pass"
        gpus = math.ceil(job.gpus) if job.known else None
        found.add(name, submitted, duration, gpus, model=job.workload, user=job.user, fate=fate)


def read_v2023(path: Path) -> Trace:
    """Read an ``openb_pod_list_*.csv``: a job per pod, of at most 8 GPUs."""
    found, parts = Gathering(path), 0
    for row in read_rows(path, PODS, found.skipped):
        gpus, share = row.count("num_gpu"), row.number("gpu_milli")
        created, began, ended = (row.number(name) for name in ("creation_time", "scheduled_time", "deletion_time"))
        phase = row.text("pod_phase")
        parts += bool(gpus and share and share < 1000)
        if gpus and (began is None or phase == "Pending"):
            found.skip(NEVER_RAN)
        elif gpus and phase not in _PODS:
            found.skip(OTHER_STATE)
        elif gpus and ended is None:
            found.skip(STILL_RUNNING)
        elif gpus and began is not None and created is not None and began < created:
            found.skip(RAN_BEFORE)
        elif gpus and began is not None and ended is not None and ended < began:
            found.skip(ENDED_BEFORE)
        else:
            duration = None if began is None or ended is None else ended - began
            found.add(row.text("name") or f"line-{row.line}", created, duration, gpus, fate=_PODS.get(phase, "pass"))
    found.notes.append(f"{parts} pods ask for a part of a GPU and count as one GPU")
    found.notes.append("a pod deleted while it was running counts as killed")
    return found.trace(path.stem)
