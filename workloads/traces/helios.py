"""Helios: ``cluster_log.csv`` of a SenseTime cluster, April to September 2020 (Hu et al., SC'21).

Columns and states as the README of ``S-Lab-System-Group/HeliosData`` lists them; the log names no hosts and no models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workloads.traces.slurm import gather
from workloads.traces.trace import Trace

REQUIRED: Final = (
    "job_id",
    "user",
    "vc",
    "gpu_num",
    "node_num",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
)


def read(path: Path) -> Trace:
    """Read a ``cluster_log.csv``; the trace is named after its folder (Venus, Earth, ..)."""
    found = gather(path, REQUIRED, "vc", "")
    found.notes.append("Helios says nothing of models and hosts")
    return found.trace(f"helios-{path.parent.name.lower()}" if path.parent.name else "helios")
