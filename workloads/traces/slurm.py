"""What the job logs of Helios and Acme have in common: the states and the three times of Slurm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from topologies.table import Row, read_rows
from workloads.traces.gathering import ENDED_BEFORE, NEVER_RAN, OTHER_STATE, RAN_BEFORE, STILL_RUNNING, Gathering

FATE: Final[Mapping[str, str]] = {
    "COMPLETED": "pass",
    "CANCELLED": "kill",
    "FAILED": "fail",
    "TIMEOUT": "fail",
    "NODE_FAIL": "fail",
    "OUT_OF_MEMORY": "fail",
}
"""State -> fate; Helios's and Acme's pages count TIMEOUT and NODE_FAIL as failed."""

_UNFINISHED: Final[Mapping[str, str]] = {"RUNNING": STILL_RUNNING, "PENDING": NEVER_RAN}


def gather(path: Path, required: Sequence[str], cluster: str, kind: str) -> Gathering:
    """Read a log; ``cluster`` and ``kind`` are the columns of the virtual cluster and of the kind of work."""
    found = Gathering(path)
    for row in read_rows(path, required, found.skipped):
        _add(row, found, cluster, kind)
    return found


def _add(row: Row, found: Gathering, cluster: str, kind: str) -> None:
    state = row.text("state").upper()
    if state not in FATE:
        found.skip(_UNFINISHED.get(state, OTHER_STATE))
        return
    submitted, began, ended = row.time("submit_time"), row.time("start_time"), row.time("end_time")
    duration, gpus = row.number("duration"), row.count("gpu_num")
    if gpus and began is None:
        found.skip(NEVER_RAN)
    elif gpus and began is not None and submitted is not None and began < submitted:
        found.skip(RAN_BEFORE)
    elif gpus and began is not None and ended is not None and ended < began:
        found.skip(ENDED_BEFORE)
    else:
        # Kalos's duration holds the time in the queue: the times themselves say how long it ran.
        ran = duration if began is None or ended is None else ended - began
        found.add(
            row.text("job_id") or f"line-{row.line}",
            submitted,
            ran,
            gpus,
            model="" if row.text(kind) == "Other" else row.text(kind),
            user=row.text("user"),
            virtual_cluster=row.text(cluster),
            fate=FATE[state],
        )
