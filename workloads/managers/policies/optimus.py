"""Optimus (Peng et al., EuroSys 2018) in its allreduce form: GPUs go where they shorten a job most.

Each round every job gets one GPU, an elastic one its minimum, in order of submission; then one more GPU at a time goes
to the job whose remaining time it shortens most, while it shortens any. A step of a job computes a fixed batch, divided
over its GPUs. As an oracle it knows speeds and what is left; online it fits both to what it measures
(:mod:`workloads.managers.policies.fitting`). A job of which no speed is known is taken to scale perfectly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import ClassVar, Final

from workloads.managers.actions import Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob, Tick
from workloads.managers.jobs import Waiting
from workloads.managers.options import next_round, number, shown
from workloads.managers.policies.fitting import fit_losses, fit_steps, fitted_step_s
from workloads.managers.policies.preemption import Candidate, asked_by
from workloads.managers.policies.queue_room import Limits, QueueRoom
from workloads.managers.policies.srtf import remaining_s

ROUND_S = 600.0
RESTART_S = 30.0
EPOCHS_UNKNOWN = 20.0
"""Epochs that a job with too few losses is taken to need from where it is."""

KNOWS_SPEEDS: Final = "knowing their speeds (they are taken to scale perfectly)"

StepOf = Callable[[int], float]
"""GPUs -> seconds that a second of the job's work takes on so many."""


def step_s(job: Waiting, gpus: int) -> float:
    """Seconds of a step on ``gpus`` GPUs, infinite for more than were measured.

    Unless it was measured: compute divided over them, and a ring that sends 2 (n - 1) / n of the model: a single GPU
    sends nothing.
    """
    if job.step_s:
        return job.step_s[gpus - 1] if gpus <= len(job.step_s) else inf
    return job.compute_s * job.gpus / gpus + _communication_s(job, gpus)


def _communication_s(job: Waiting, gpus: int) -> float:
    """Seconds of communication on ``gpus`` GPUs. What a job on one GPU declares is that of a ring of two."""
    if job.communication_s > 0.0:
        known_on, known_s = max(2, job.gpus), job.communication_s
    elif job.ring is not None and gpus >= job.ring[0]:
        known_on, known_s = job.ring
    else:
        return 0.0
    return known_s * _sent(gpus) / _sent(known_on)


def _sent(gpus: int) -> float:
    """What each GPU of a ring sends, in sizes of the model."""
    return 2 * (gpus - 1) / gpus


class Optimus(Policy):
    """Allocates in rounds of ``round_s`` seconds; a resize costs the job ``restart_s``, its first start ``start_s``.
    It may grow to ``most`` times the GPUs it asked for, an elastic one to its own limit. ``speeds`` and ``lengths``:
    ``known``, or fitted online to the ``measured`` speeds (jobs of a model and size share them), and to the measured
    losses.
    """

    name: ClassVar[str] = "optimus"
    summary: ClassVar[str] = "one GPU more at a time to the job that gains most, in rounds; oracle, or fitted online"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False

    def __init__(
        self,
        *,
        round_s: float = ROUND_S,
        restart_s: float = RESTART_S,
        start_s: float = 0.0,
        most: float = 1.0,
        speeds: str = "known",
        lengths: str = "known",
    ) -> None:
        self._round_s = number(self.name, "round_s", round_s, above=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)
        self._start_s = number(self.name, "start_s", start_s, least=0)
        self._most = number(self.name, "most", most, above=0)
        self._fit_speeds = _chosen("speeds", speeds)
        self._fit_lengths = _chosen("lengths", lengths)
        self.measures_jobs = self._fit_speeds or self._fit_lengths
        self.uses = {"elastic": ""} if self._fit_speeds else {"elastic": "", "speeds": KNOWS_SPEEDS}

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """A job without losses cannot have its length fitted."""
        if self._fit_lengths and (job.loss_of is None or job.epoch_s <= 0.0):
            return f"job '{job.name}' has no losses, which 'lengths: measured' of optimus fits"
        return None

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Allocate all GPUs each round, and whenever the cluster was empty."""
        if not isinstance(event, Tick) and state.running:
            return
        running = list(state.running.values())
        everybody: list[Candidate] = [*running, *(entry.job for entry in queued)]
        everybody.sort(key=lambda each: asked_by(each).number)
        counts = self.allocate(everybody, state.present_gpus, state.time_s, state.limits)
        changed = [each for each in running if counts[each.name] != len(each.gpus)]
        for each in changed:
            yield Preempt(each.name, state.time_s, "another share of the round" if counts[each.name] else "no GPU left")
        asking = [*(each.until(state.time_s) for each in changed), *(entry.job for entry in queued)]
        for job in sorted(asking, key=lambda job: (counts[job.name], job.number)):
            if counts[job.name]:
                pause_s = self._start_s if job.started_s is None else self._restart_s
                yield PlacementRequest(job, counts[job.name], reason="its share of the round", pause_s=pause_s)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next round."""
        if not state.running and not waiting:
            return inf
        return next_round(state.time_s, self._round_s)

    def allocate(
        self, jobs: Sequence[Candidate], gpus: int, now_s: float, limits: Limits = MappingProxyType({})
    ) -> dict[str, int]:
        """Return job -> GPUs: the least of each in order, all or nothing, then one at a time by gain.

        ``limits``: as in the cluster's state.
        """
        room = QueueRoom(limits)
        counts, left = dict.fromkeys((each.name for each in jobs), 0), gpus
        for each in jobs:
            least = asked_by(each).min_gpus or 1
            if least <= left and room.take(each.name, least):
                counts[each.name] = least
                left -= least
        known = {each.name: each for each in jobs if counts[each.name]}
        gains = self._gains(list(known.values()), now_s)
        heap = [(-gains[name](counts[name]), place, name) for place, name in enumerate(known)]
        heapq.heapify(heap)
        while left and heap and heap[0][0] < 0.0:
            _, place, name = heapq.heappop(heap)
            if not room.take(name, 1):
                continue
            counts[name] += 1
            left -= 1
            heapq.heappush(heap, (-gains[name](counts[name]), place, name))
        return counts

    def _gains(self, jobs: Sequence[Candidate], now_s: float) -> Mapping[str, StepOf]:
        """Job -> GPUs -> seconds by which one GPU more shortens what is left of it."""
        shared = _samples([asked_by(each) for each in jobs]) if self._fit_speeds else {}
        return {each.name: self._gain_of(each, now_s, shared) for each in jobs}

    def _gain_of(self, each: Candidate, now_s: float, shared: Mapping[tuple[str, int], dict[int, float]]) -> StepOf:
        job = asked_by(each)
        left_s = fitted_left_s(job, each, now_s) if self._fit_lengths else remaining_s(each, now_s)
        most = self._most * job.gpus if job.max_gpus is None else job.max_gpus
        takes_s = _fitted(job, shared) if self._fit_speeds else _known(job)

        def gain(gpus: int) -> float:
            saved = 0.0 if gpus >= most else takes_s(gpus) - takes_s(gpus + 1)
            return saved * left_s if saved > 0.0 else 0.0  # what is left may be infinite: 0 x that is no number

        return gain


def fitted_left_s(job: Waiting, each: Candidate, now_s: float) -> float:
    """Seconds of work left until the loss of ``job`` converges, as fitted to what was measured of it."""
    known_s = remaining_s(each, now_s)
    done_s = 0.0 if job.duration_s is None else job.duration_s - known_s
    curve = fit_losses(tuple((at_s / job.epoch_s, loss) for at_s, loss in job.losses))
    if curve is None:
        return EPOCHS_UNKNOWN * job.epoch_s
    return max(job.epoch_s, curve.converges_at() * job.epoch_s - done_s)


def _known(job: Waiting) -> StepOf:
    """By its stages or measured steps; without them its GPUs are taken to scale perfectly."""
    measured = len(job.step_s) or job.gpus
    own_s = step_s(job, min(job.gpus, measured))
    return (lambda gpus: step_s(job, gpus) / own_s) if 0.0 < own_s < inf else (lambda gpus: job.gpus / gpus)


def _fitted(job: Waiting, shared: Mapping[tuple[str, int], dict[int, float]]) -> StepOf:
    """Of its own samples and those of its like; without any, its GPUs are taken to scale perfectly."""
    samples = {**shared.get((job.model, job.gpus), {}), **dict(job.measured_s)}
    coefficients = fit_steps(samples or {job.gpus: 1.0})
    return lambda gpus: fitted_step_s(coefficients, gpus)


def _samples(jobs: Sequence[Waiting]) -> dict[tuple[str, int], dict[int, float]]:
    """(Model, GPUs asked for) -> GPUs -> seconds that a second of work took."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for job in jobs:
        if job.model:
            found.setdefault((job.model, job.gpus), {}).update(job.measured_s)
    return found


def _chosen(option: str, value: object) -> bool:
    """Whether it is measured; ``ValueError`` for neither."""
    if value not in ("known", "measured"):
        raise ValueError(f"option '{option}' of optimus must be known or measured, not '{shown(value)}'")
    return value == "measured"
