"""What a run tells about itself while it goes on, typed. Pure.

A sample travels as a progress message of the run, ``{"phase": "live", "sample": {...}}``, and from there to the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from topologies.dataclass_json import decode, encode

LIVE: Final = "live"
"""The phase of messages that hold a sample."""

State = Literal["waiting", "running", "ended"]


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job is; ``level`` is None where it has none, ``utilization`` (0 to 1) before its warm-up is over.

    ``planned``: the iterations it makes in this run, if none is disturbed.
    """

    name: str
    gpus: int
    state: State
    level: int | None
    iterations: int
    planned: int
    utilization: float | None


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The share of its rate that a link sent at one level; ``link`` is its place among ``fabric.network_links``."""

    link: int
    level: int
    share: float


@dataclass(frozen=True, slots=True)
class LiveSample:
    """A run at ``time_s``, undilated seconds from its start.

    ``utilization``: compute time / allocated time of all GPUs, over the iterations after warm-up that have ended.
    ``loads``: link, level, share of the link's rate in thousandths; link, level, ...: numbers one after the other are
    quick to write and to check. ``routes``: job -> links on the paths of its flows, where that has changed.
    """

    time_s: float
    utilization: float | None
    jobs: tuple[JobState, ...]
    loads: tuple[int, ...]
    routes: Mapping[str, tuple[int, ...]] | None = None

    def link_loads(self) -> Iterator[LinkLoad]:
        """``loads`` as values."""
        numbers = iter(self.loads)
        for link, level, thousandths in zip(numbers, numbers, numbers, strict=True):
            yield LinkLoad(link, level, thousandths / 1000)


def message_of(sample: LiveSample) -> dict[str, Any]:
    """What :func:`read_sample` takes, beside the phase."""
    return {"sample": encode(sample)}


def read_sample(message: Mapping[str, Any]) -> LiveSample:
    """Return the sample in ``message``; ``ValueError``, one line, if there is none."""
    sample = decode(LiveSample, message.get("sample"), "sample")
    if len(sample.loads) % 3 or any(number < 0 for number in sample.loads):
        raise ValueError("sample.loads: expected link, level and thousandths of the rate of each load")
    return sample
