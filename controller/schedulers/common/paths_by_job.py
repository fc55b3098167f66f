"""Paths of flows, kept job by job: an event that changes one job need not copy the paths of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from topologies.fabric import Path


class PathsByJob(Mapping[str, Path]):
    """Flow id -> links of all jobs of ``by_job`` (job -> flow id -> links); looked through only when asked."""

    def __init__(self, by_job: Mapping[str, Mapping[str, Path]]) -> None:
        self.by_job = by_job

    @cached_property
    def _all(self) -> dict[str, Path]:
        return {flow: path for paths in self.by_job.values() for flow, path in paths.items()}

    def __getitem__(self, flow: str) -> Path:
        return self._all[flow]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.by_job!r})"


def paths_of(paths: Mapping[str, Path], job: str) -> Mapping[str, Path]:
    """Return a mapping with the ``paths`` of the flows of ``job``: only those, where paths are kept by job."""
    return paths.by_job.get(job, {}) if isinstance(paths, PathsByJob) else paths
