"""What a running job loads on which link, from the decision in force. Pure; what does not change is kept by job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Final

import numpy as np

from controller.decision import Decision
from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.path_index import FabricIndex, Floats, Numbers
from testbed.engines.replay.compiled_loops import seconds_by_link
from testbed.fluid.maxmin import Integers
from topologies.fabric import Path
from workloads.job import Job
from workloads.periodic_job import SLACK_S, PeriodicJob

LINK_CLASSES: Final = ("pcie-nic", "nic-tor", "tor-agg")


MOST_KNOWN: Final = 16
"""Choices of paths whose loads are kept of a job, and fluids of each; all are forgotten when there are more."""


@dataclass(eq=False, slots=True)
class Loads:
    """What a job loads on some paths, and its fluids there, with their signs, by level, period and shift.

    ``paths`` are held, so that no other ones get their identity; ``links``: [hop, flow] -> link; ``pcie``: the links
    between PCIe switches and NICs among those that it loads.
    """

    paths: Mapping[str, Path]
    links: Numbers
    arrays: tuple[Integers, Floats]
    by_link: Mapping[int, float]
    by_class: tuple[float, ...]
    pcie: Integers
    communication_s: float
    fluids: dict[tuple[int, float, float], tuple[PeriodicJob[int], int]] = field(default_factory=dict)


_NONE: Final[Integers] = np.empty(0, np.int64)
_NOTHING: Final = Loads({}, np.empty((0, 0), np.intp), (_NONE, np.empty(0)), {}, (0.0,) * len(LINK_CLASSES), _NONE, 0.0)


class Traffic:
    """A job on a fabric: its ECMP paths, the links it loads on given paths, and its fluid model."""

    def __init__(self, job: Job, index: FabricIndex, classes: Numbers, seed: int) -> None:
        """``classes``: see :func:`link_classes`."""
        self.job = job
        self.sends = bool(job.flows)
        """Whether the job uses the network."""
        self._index, self._classes = index, classes
        self._flows = index.job(job)
        self._seed = seed
        self.alone_s = self._flows.alone.iteration_s
        """Seconds of an iteration where only the job's own host links bound its communication."""
        self._lead_s = self._flows.alone.lead_s
        self._compute_s = job.compute_s
        self._phase = Random(f"{seed}|{job.name}").random()
        self._flow_names = tuple(flow.id for flow in job.flows)
        self._followed: Mapping[str, Path] | None = None
        self._known: dict[int, Loads] = {}
        self._taken = replace(_NOTHING, fluids={})
        self.sign = hash(job.name)
        """Changes whenever anything changes that others on its links feel, its level apart."""
        self.keeps_shift = False
        """Whether the decision in force asks for a time shift."""

    @property
    def loads(self) -> Mapping[int, float]:
        """Link -> seconds that it needs for an iteration's bytes, PCIe to and from NICs included."""
        return self._taken.by_link

    @property
    def arrays(self) -> tuple[Integers, Floats]:
        """``loads`` as arrays: links and seconds."""
        return self._taken.arrays

    @property
    def by_class(self) -> tuple[float, ...]:
        """Seconds of links per iteration, added up over each of :data:`LINK_CLASSES`."""
        return self._taken.by_class

    @property
    def pcie_links(self) -> Integers:
        """The links between PCIe switches and NICs among those that it loads."""
        return self._taken.pcie

    @cached_property
    def default(self) -> Mapping[str, Path]:
        """The job's ECMP paths."""
        return self._flows.paths(self._flows.hashed_choice(self._seed)) if self.job.flows else {}

    def follow(self, decided: Mapping[str, Path]) -> None:
        """Take the paths of the job's flows from ``decided``, or ECMP's where it lacks them."""
        if decided is self._followed:
            return
        self._followed = decided
        paths = self.default if decided.keys().isdisjoint(self._flow_names) else decided
        known = self._known.get(id(paths))
        if known is None:
            known = self._loads(paths)
        self._taken = known

    def _loads(self, paths: Mapping[str, Path]) -> Loads:
        """What the job loads on ``paths``, which is what it loads already if they have the same links."""
        index, flows = self._index, self._flows
        if isinstance(paths, ChosenPaths) and paths.job is flows:
            links = paths.links
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
        else:
            links = self._by_name(paths)
            if np.array_equal(links, self._taken.links):
                return self._taken
        used, seconds = seconds_by_link(links, flows.bytes, *flows.pcie_bytes, index.capacity, index.absent, index.room)
        sums = np.bincount(self._classes[used], seconds, minlength=len(LINK_CLASSES) + 1)
        found = Loads(
            paths,
            links,
            (used, seconds),
            dict(zip(used.tolist(), seconds.tolist(), strict=True)),
            tuple(sums[: len(LINK_CLASSES)].tolist()),
            used[self._classes[used] == LINK_CLASSES.index("pcie-nic")],
            float(seconds.max(initial=0.0)),
        )
        if isinstance(paths, ChosenPaths):
            self._known[id(paths)] = found
        return found

    def _by_name(self, paths: Mapping[str, Path]) -> Numbers:
        """[hop, flow] -> link, where paths are given by name."""
        numbers = self._index.number
        wanted = [paths[flow] if flow in paths else self.default[flow] for flow in self._flow_names]
        longest = max(map(len, wanted))
        rows = [[numbers[link] for link in path] + [self._index.absent] * (longest - len(path)) for path in wanted]
        return np.ascontiguousarray(np.array(rows, np.intp).T)

    def fluid(self, decision: Decision, levels: int) -> PeriodicJob[int]:
        """The job as a fluid at its level; with the pauses that keep its time shift, if it has one.

        Without a shift the job has a phase of its own, drawn by the seed: jobs do not start together.
        """
        job = self.job
        level = decision.levels.get(job.name, levels - 1)
        if not decision.levels.keys().isdisjoint(self._flow_names):
            level = min(decision.level_of(flow, levels - 1) for flow in job.flows)
        decided_by = (level, decision.periods.get(job.name, 0.0), decision.shifts.get(job.name, 0.0))
        known = self._taken.fluids.get(decided_by)
        if known is None:
            links, seconds = self.arrays
            sign = hash((job.name, links.tobytes(), seconds.tobytes(), *decided_by[1:]))
            if len(self._taken.fluids) >= MOST_KNOWN:
                self._taken.fluids.clear()
            known = self._taken.fluids[decided_by] = self._fluid_at(*decided_by), sign
        fluid, self.sign = known
        self.keeps_shift = decided_by[1] > 0.0
        return fluid

    def _fluid_at(self, level: int, period_s: float, shift_s: float) -> PeriodicJob[int]:
        compute_s, lead_s = self._compute_s, self._lead_s
        moving_s = max(compute_s, lead_s + self._taken.communication_s)
        missing_s = self.alone_s - moving_s
        pause_s = missing_s if missing_s > SLACK_S else 0.0  # links inside hosts bound it, which are not loaded
        own_s = pause_s + moving_s
        if period_s <= 0.0:
            offset_s = self._phase * own_s
        else:
            added_s = max(0.0, period_s - own_s)
            period_s, pause_s = own_s + added_s, pause_s + added_s
            offset_s = (added_s - shift_s) % period_s
            # The remainder of a number just below 0 is rounded to the whole period.
            offset_s = offset_s if offset_s < period_s else 0.0
        return PeriodicJob(compute_s, lead_s, self.loads, float(len(self.job.gpus)), offset_s, level, pause_s)


def link_classes(index: FabricIndex) -> Numbers:
    """Return for each link its place in :data:`LINK_CLASSES`; one behind the last for links of other kinds."""
    kinds = {"pcie": 0, "host-tor": 1, "tor-agg": 2}
    links = index.fabric.links
    return np.array([kinds.get(links[name].kind, len(LINK_CLASSES)) for name in index.number], np.intp)
