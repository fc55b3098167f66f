"""A trace as a value: the jobs of a cluster, when they came, how long they ran, and on how many GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from workloads.errors import TraceError

__all__ = ["FATES", "OUTSIDE_WINDOW", "Trace", "TraceError", "TraceJob", "load", "merge", "window"]

FATES: Final = ("pass", "kill", "fail")
"""How a job can end: by itself, stopped from outside, or broken."""

OUTSIDE_WINDOW: Final = "submitted outside the window"
"""Why :func:`window` leaves a job out."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace; ``name`` is unique in it.

    ``submit_s`` is seconds after the trace began, ``duration_s`` the seconds it ran in production, all ``attempts``
    together. ``model`` is its name in the source, ``hosts`` one entry per host it ran on; empty where the source does
    not say. An elastic job has ``min_gpus`` or ``max_gpus``, each ``gpus`` where it is None; an ``opportunistic`` one
    uses idle GPUs only. Raises ``ValueError`` for what no job can be.
    """

    name: str
    submit_s: float
    duration_s: float
    gpus: int
    model: str = ""
    user: str = ""
    virtual_cluster: str = ""
    fate: str = "pass"
    hosts: tuple[str, ...] = ()
    attempts: int = 1
    min_gpus: int | None = None
    max_gpus: int | None = None
    opportunistic: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.submit_s) and self.submit_s >= 0):
            raise ValueError(f"job '{self.name}': submit_s must be 0 or more, not {self.submit_s:g}")
        if not (math.isfinite(self.duration_s) and self.duration_s > 0):
            raise ValueError(f"job '{self.name}': duration_s must be above 0, not {self.duration_s:g}")
        if self.gpus < 1:
            raise ValueError(f"job '{self.name}': gpus must be at least 1, not {self.gpus}")
        if self.fate not in FATES:
            raise ValueError(f"job '{self.name}': fate must be one of {', '.join(FATES)}, not '{self.fate}'")
        if self.attempts < 1:
            raise ValueError(f"job '{self.name}': attempts must be at least 1, not {self.attempts}")
        if self.min_gpus is not None and not 1 <= self.min_gpus <= self.gpus:
            raise ValueError(f"job '{self.name}': min_gpus must be 1 to {self.gpus} (gpus), not {self.min_gpus}")
        if self.max_gpus is not None and self.max_gpus < self.gpus:
            raise ValueError(f"job '{self.name}': max_gpus must be at least {self.gpus} (gpus), not {self.max_gpus}")

    @property
    def gpu_seconds(self) -> float:
        """GPUs times the seconds it ran."""
        return self.gpus * self.duration_s

    @property
    def elastic(self) -> bool:
        """Whether it can run on fewer or more GPUs than it asks for."""
        return (self.min_gpus or self.gpus) < (self.max_gpus or self.gpus)


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs, sorted by submission and then as in the source.

    ``skipped`` counts by reason what the source holds and ``jobs`` does not. ``synthetic`` traces
    come from a generator and are labelled so wherever they are used. ``notes`` state what was assumed.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    skipped: Mapping[str, int]
    synthetic: bool = False
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name as reports show it."""
        return f"{self.name} (synthetic)" if self.synthetic else self.name

    @property
    def summary(self) -> str:
        """One line: how many jobs, and how many were left out for which reason."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
        return f"{self.label}: {len(self.jobs)} jobs; left out: {reasons or 'none'}"


def window(trace: Trace, start_s: float, end_s: float) -> Trace:
    """Return the jobs submitted in [``start_s``, ``end_s``), their times counted from ``start_s``.

    Jobs that came before and still ran are left out too. Raises ``ValueError`` if the window is empty or reversed.
    """
    if not 0 <= start_s < end_s:
        raise ValueError(f"a window must begin at 0 s or later and end after it begins, not {start_s:g} to {end_s:g} s")
    kept = tuple(replace(job, submit_s=job.submit_s - start_s) for job in trace.jobs if start_s <= job.submit_s < end_s)
    skipped = dict(trace.skipped)
    if len(kept) < len(trace.jobs):
        skipped[OUTSIDE_WINDOW] = skipped.get(OUTSIDE_WINDOW, 0) + len(trace.jobs) - len(kept)
    return replace(trace, name=f"{trace.name}[{start_s:g}s..{end_s:g}s]", jobs=kept, skipped=skipped)


def load(trace: Trace, gpus: int, span_s: float | None = None) -> float:
    """Return rho = sum of GPUs x duration / (``gpus`` x span): 1 is as much work as the cluster can do.

    ``span_s`` is by default the time from the first to the last submission. Raises ``ValueError``
    without a span or without GPUs.
    """
    if span_s is None:
        times = [job.submit_s for job in trace.jobs]
        span_s = max(times) - min(times) if times else 0.0
    if not span_s > 0:
        raise ValueError(f"trace {trace.name} has no span: its jobs are fewer than two or come all at once")
    if gpus < 1:
        raise ValueError(f"gpus must be at least 1, not {gpus}")
    return sum(job.gpu_seconds for job in trace.jobs) / (gpus * span_s)


def merge(name: str, traces: Sequence[Trace]) -> Trace:
    """Return one trace of several whose times count from the same moment; equal names are made unique."""
    taken: dict[str, int] = {}
    jobs = sorted((job for trace in traces for job in trace.jobs), key=lambda job: job.submit_s)
    skipped: dict[str, int] = {}
    for trace in traces:
        for reason, count in trace.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    return Trace(
        name,
        tuple(replace(job, name=unique(job.name, taken)) for job in jobs),
        skipped,
        any(trace.synthetic for trace in traces),
        tuple(dict.fromkeys(note for trace in traces for note in trace.notes)),
    )


def unique(name: str, taken: MutableMapping[str, int]) -> str:
    """Return ``name``, or ``name#2``, ``name#3`` .. if it is ``taken``, and take it.

    ``taken``: name -> the last number that was tried for it, from which the next search goes on.
    """
    chosen, number = name, taken.get(name, 0) + 1
    if number > 1:
        chosen = f"{name}#{number}"
    while chosen in taken:
        number += 1
        chosen = f"{name}#{number}"
    taken[name] = number
    taken.setdefault(chosen, 1)
    return chosen
