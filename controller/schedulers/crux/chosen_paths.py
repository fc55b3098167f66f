"""A job's paths, known by number: names are looked up only where somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Protocol

from controller.schedulers.crux.path_loops import Numbers
from topologies.fabric import Path
from workloads.job import Job


class Indexed(Protocol):
    """A job whose flows have numbered candidates: :class:`.path_index.JobIndex`."""

    job: Job

    def links_of(self, choice: Numbers, /) -> Numbers:
        """[hop, flow] -> link, for ``choice``: flow -> candidate."""

    def named_paths(self, choice: Numbers, /) -> dict[str, Path]:
        """Flow id -> path by name, for ``choice``."""


class ChosenPaths(Mapping[str, Path]):
    """Flow id -> links of ``job``, for ``choice``: flow -> candidate."""

    def __init__(self, job: Indexed, choice: Numbers) -> None:
        self.job, self.choice = job, choice

    @cached_property
    def links(self) -> Numbers:
        """[hop, flow] -> link."""
        return self.job.links_of(self.choice)

    @cached_property
    def _named(self) -> dict[str, Path]:
        return self.job.named_paths(self.choice)

    def __contains__(self, flow: object) -> bool:
        return flow in self.job.job.flow_by_id

    def __getitem__(self, flow: str) -> Path:
        return self._named[flow]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self.job.job.flows)

    def __repr__(self) -> str:
        return repr(self._named)

    def __reduce__(self) -> tuple[type[dict[str, Path]], tuple[dict[str, Path]]]:
        """Names are what other processes understand."""
        return dict, (self._named,)
