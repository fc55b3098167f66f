"""Acme: ``trace_seren.csv`` and ``trace_kalos.csv`` of Shanghai AI Laboratory (Hu et al., NSDI'24).

March to August 2023. Columns and states as the README of ``InternLM/AcmeTrace`` lists them. The kind of
work (pretraining, evaluation, ..) is used as the model's name, ``Other`` for none. Run times are the end minus the
start: in the README's own rows of Kalos the column ``duration`` includes the queue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workloads.traces.slurm import gather
from workloads.traces.trace import Trace

REQUIRED: Final = (
    "job_id",
    "user",
    "node_num",
    "gpu_num",
    "type",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "gpu_time",
)


def read(path: Path) -> Trace:
    """Read one of the two job traces; its name is the file's."""
    found = gather(path, REQUIRED, "", "type")
    found.notes.append("Acme says nothing of hosts; the kind of work stands for the model")
    found.notes.append("Acme's run times are end - start: the duration column of Kalos includes the queue")
    return found.trace(f"acme-{path.stem.removeprefix('trace_')}")
