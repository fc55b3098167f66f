"""Pollux: workloads of its simulator (Qiao et al., OSDI 2021; ``petuum/adaptdl``, branch ``osdi21-artifact``,
Apache-2.0).

A workload says which application a job trains, with which batch, on how many GPUs; how long that takes follows from the
measurements of its applications, in the folder ``traces`` beside the folder of workloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from topologies.table import Row, read_rows
from workloads.traces.gathering import Gathering, bounded
from workloads.traces.simulators.pollux_measurements import Measurements, measurements, packed
from workloads.traces.trace import Trace

REQUIRED: Final = ("name", "time", "application", "num_replicas", "batch_size")
MOST_GPUS: Final = 4096
"""Of a job; far more than are measured."""


@dataclass(frozen=True, slots=True)
class PolluxJob:
    """A job of a workload: ``batch`` samples in an iteration of all its ``gpus``."""

    name: str
    submit_s: float
    gpus: int
    batch: int
    application: Measurements

    @property
    def duration_s(self) -> float:
        """Seconds on its GPUs, on as few servers as possible."""
        return sum(self.application.epochs_s(packed(self.gpus), self.batch))


def read(path: Path) -> Trace:
    """Read a ``workload-*.csv``."""
    found = Gathering(path)
    for job in jobs(path, found):
        found.add(job.name, job.submit_s, job.duration_s, job.gpus, model=job.application.name)
    found.notes.append("durations follow from Pollux's measurements, on as few servers of 4 GPUs as possible")
    return found.trace(f"pollux-{path.stem}")


def jobs(path: Path, found: Gathering | None = None) -> Iterator[PolluxJob]:
    """Yield the jobs of a workload; :class:`TraceError` for one whose application is not measured."""
    folder = path.absolute().parent.parent / "traces"
    found = Gathering(path) if found is None else found
    known: dict[str, Measurements] = {}
    for row in read_rows(path, REQUIRED, found.skipped):
        name, gpus, batch, time_s = (
            row.text("application"),
            row.count("num_replicas"),
            row.count("batch_size"),
            row.number("time"),
        )
        if not gpus or not batch or time_s is None:
            row.fail("time, num_replicas or batch_size is missing", "all three, above 0")
        if name not in known:
            known[name] = _measured(row, folder, name)
        _check_batch(row, known[name], batch, gpus)
        job = PolluxJob(row.text("name") or f"line-{row.line}", time_s, gpus, batch, known[name])
        bounded(row, "the run time that follows from the measurements", job.duration_s)
        yield job


def _measured(row: Row, folder: Path, name: str) -> Measurements:
    if name in ("", ".", "..") or "/" in name or not _is_folder(folder / name):
        row.fail(f"application {name!r} is not measured", f"a folder of measurements {folder / (name or 'NAME')}")
    return measurements(folder / name)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long for the file system
        return False


def _check_batch(row: Row, application: Measurements, batch: int, gpus: int) -> None:
    least, most = application.batches
    if not least <= batch <= most:
        row.fail(f"batch_size is {batch}", f"{least} to {most}, as {application.name} is measured")
    if gpus > MOST_GPUS or not application.divides(gpus, batch):
        bound = f"at most {min(most, MOST_GPUS)}: each GPU has a sample of a batch, the largest of which is {most}"
        row.fail(f"num_replicas is {gpus} for batch_size {batch}", bound)
