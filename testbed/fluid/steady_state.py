"""What jobs that share links settle down to: iterations per second in the long run, without stepping through weeks.

The jobs are the fluids of :mod:`testbed.fluid.periodic`. As long as no job comes or goes they repeat, in
the long run, the same pattern; so a stretch of it is computed, doubled until its average no
longer changes, and the average holds for the rest. Averages weigh the middle of the stretch most (a triangle),
so that iterations cut at its ends do not matter. Any number of jobs; the loop over events is
:mod:`testbed.fluid.steady_state_kernel`. Jobs that share GPUs compute one at a time, first come first served, as
:mod:`workloads.iteration.shared_gpus` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from testbed.fluid.fluids import Contention
from testbed.fluid.maxmin import Floats, Integers
from testbed.fluid.numerical_settings import STANDARD, NumericalSettings
from testbed.fluid.periodic import state_at_start
from testbed.fluid.steady_state_kernel import run, turns_at_start
from workloads.periodic_job import PeriodicJob

State = tuple[float, float, float]
"""What is left of an iteration: seconds of compute, seconds of the lead in it, and the share of communication."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Iterations per second of each job, the seconds that were computed to know it, and where the jobs stand then.

    ``lasting``: these are long-run rates, not averages over just ``horizon_s``.
    """

    rates: tuple[float, ...]
    horizon_s: float
    states: tuple[State, ...]
    lasting: bool


class Settling:
    """Jobs on the way to their long-run rates, over as many calls as that takes.

    Between calls everything stays as it is, so that stopping at an event that touches none of these jobs costs
    nothing: due times, speeds, sums, and how far the stretch has come.
    """

    def __init__(
        self,
        jobs: Contention,
        states: Sequence[State | None] = (),
        packs: Sequence[int] = (),
        stretch_s: float = inf,
        numerics: NumericalSettings = STANDARD,
    ) -> None:
        """The others as in :func:`settle`; iterations much shorter than ``stretch_s`` are bundled."""
        count = len(jobs.jobs)
        self.jobs, self.packs = jobs, tuple(packs)
        pack = _packs(packs, count)
        first_s = numerics.first_periods * float(jobs.periods_s.max())
        self._bundles = jobs.bundles(pack >= 0, min(first_s, stretch_s))
        self._clock = np.array([0.0, first_s, -1.0, float(numerics.most_doublings), numerics.tolerance])
        self._arrays(pack, states)

    @classmethod
    def stepping(cls, jobs: Contention, states: Sequence[State | None], packs: Sequence[int]) -> Settling:
        """Return one that never settles: every iteration is stepped through."""
        made = cls.__new__(cls)
        made.jobs, made.packs = jobs, tuple(packs)
        made._bundles = np.ones(len(jobs.jobs))
        made._clock = np.array([0.0, inf, -1.0, 0.0, 0.0])
        made._arrays(_packs(packs, len(jobs.jobs)), states)
        return made

    def _arrays(self, pack: Integers, states: Sequence[State | None]) -> None:
        on, count = self.jobs, len(self.jobs.jobs)
        self._times = on.times * self._bundles[:, None]
        self._left = _state(self._times, self._bundles, states)
        self._rates = np.zeros(count)
        self._settled: Settled | None = None
        self._kept = (
            (on.starts, on.links, on.shares, on.near, on.users, on.levels),
            self._left,
            self._times,
            on.weights,
            turns_at_start(self._left, self._times, pack),
            np.zeros((4, count)),
            np.zeros((2, count)),
            np.zeros((2, count)),
            np.zeros((3, count), np.bool_),
            np.tile(np.arange(count), (5, 1)),
            np.array([np.ones(on.count), np.zeros(on.count)]),
            self._rates,
        )

    def advance(self, limit_s: float = inf) -> Settled:
        """Return the long-run rates if they are known within ``limit_s`` seconds from the last call's end.

        Else return averages over those seconds. ``ValueError`` if they are none.
        """
        if limit_s <= 0.0:
            raise ValueError(f"rates need a time above 0 s to settle in, not {limit_s:g} s")
        if self._settled is not None:
            return self._settled
        lasting = bool(run(float(self._clock[0] + limit_s), self._clock, *self._kept))
        left = self._left / np.array([self._bundles, self._bundles, np.ones_like(self._bundles)])
        sent = self._times[:, 2]
        left[2] = np.divide(left[2], sent, out=np.zeros_like(sent), where=sent > 0)
        states = tuple(zip(*left.tolist(), strict=True))
        settled = Settled(tuple((self._rates * self._bundles).tolist()), float(self._clock[0]), states, lasting)
        if lasting:
            self._settled = settled
        return settled


def settle(
    jobs: Sequence[PeriodicJob[int]] | Contention,
    horizon_s: float | None = None,
    states: Sequence[State | None] = (),
    limit_s: float = inf,
    packs: Sequence[int] = (),
    numerics: NumericalSettings = STANDARD,
) -> Settled:
    """Return the long-run rates of ``jobs``; with ``horizon_s`` the plain averages over just that time from 0 on.

    ``states`` say where the jobs stand at 0; None, or no states, for one that stands where its ``offset_s`` says.
    No more than ``limit_s`` seconds are computed: rates that have not settled by then are averages over those.
    ``packs``: jobs of the same number, 0 or above, share their GPUs; -1, or no packs, for one that shares none.
    ``numerics`` say when long-run rates count as stable.
    """
    on = jobs if isinstance(jobs, Contention) else Contention.of(jobs)
    if horizon_s is not None:
        return Settling.stepping(on, states, packs).advance(min(horizon_s, limit_s))
    return Settling(on, states, packs, limit_s, numerics).advance(limit_s)


def _state(times: Floats, bundles: Floats, states: Sequence[State | None]) -> Floats:
    """What is left of each job's iteration [3, jobs]: as ``states`` have it, or the offset in ``times``."""
    left = state_at_start(times)
    for number, state in enumerate(states):
        if state is not None:
            whole = (bundles[number], bundles[number], times[number, 2])
            left[:, number] = np.minimum(np.array(state) * whole, times[number, :3])
    return left


def _packs(packs: Sequence[int], jobs: int) -> Integers:
    """The packs by job, numbered from 0; -1 for jobs that share with no other here."""
    given = list(packs) or [-1] * jobs
    shared = [pack for pack in dict.fromkeys(given) if pack >= 0 and given.count(pack) > 1]
    return np.array([shared.index(pack) if pack in shared else -1 for pack in given], np.int64)
