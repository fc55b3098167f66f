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
from testbed.fluid.steady_state_kernel import run
from workloads.periodic_job import SLACK_S, PeriodicJob

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


def settle(
    jobs: Sequence[PeriodicJob[int]] | Contention,
    horizon_s: float | None = None,
    states: Sequence[State | None] = (),
    limit_s: float = inf,
    packs: Sequence[int] = (),
    numerics: NumericalSettings = STANDARD,
    quotas: Sequence[float] = (),
) -> Settled:
    """Return the long-run rates of ``jobs``; with ``horizon_s`` the plain averages over just that time from 0 on.

    ``states`` say where the jobs stand at 0; None, or no states, for one that stands where its ``offset_s`` says.
    No more than ``limit_s`` seconds are computed: rates that have not settled by then are averages over those.
    ``packs``: jobs of the same number, 0 or above, share their GPUs; -1, or no packs, for one that shares none.
    ``numerics`` say when long-run rates count as stable.
    ``quotas``: a ``horizon_s`` ends earlier, when the first job has computed so many iterations.
    """
    if limit_s <= 0.0:
        raise ValueError(f"rates need a time above 0 s to settle in, not {limit_s:g} s")
    on = jobs if isinstance(jobs, Contention) else Contention.of(jobs)
    count = len(on.jobs)
    pack = _packs(packs, count)
    first, bundles, doublings = horizon_s, np.ones(count), 0
    if first is None:
        first, doublings = numerics.first_periods * float(on.periods_s.max()), numerics.most_doublings
        bundles = on.bundles(pack >= 0)
    times = on.times * bundles[:, None]
    rates = np.zeros(count)
    left = _state(times, bundles, states)
    arguments = (
        on.starts,
        on.links,
        on.shares,
        on.count,
        on.levels,
        on.weights,
        pack,
        first,
        limit_s,
        doublings,
        numerics.tolerance,
        np.array(quotas, float),
        rates,
    )
    reached = float(run(left, times, *arguments))
    lasting = horizon_s is None and reached < limit_s - SLACK_S
    left[:2] /= bundles
    left[2] = np.divide(left[2], times[:, 2], out=np.zeros(count), where=times[:, 2] > 0)
    return Settled(tuple((rates * bundles).tolist()), reached, tuple(zip(*left.tolist(), strict=True)), lasting)


def _state(times: Floats, bundles: Floats, states: Sequence[State | None]) -> Floats:
    """What is left of each job's iteration [3, jobs]: as ``states`` have it, or the offset in ``times``."""
    left = state_at_start(times)
    known = [number for number, state in enumerate(states) if state is not None]
    if known:
        given = np.array([state for state in states if state is not None])
        whole = np.column_stack((bundles[known], bundles[known], times[known, 2]))
        left[:, known] = np.minimum(given * whole, times[known, :3]).T
    return left


def state_in_phase(job: PeriodicJob[int], phase: float) -> State:
    """Return what is left of an iteration of ``job``, alone, when a share ``phase`` (0 to 1) of it has passed."""
    gone_s, lead_s = phase * job.period_s, job.lead_s + job.pause_s
    compute_left_s = max(0.0, job.compute_s + job.pause_s - gone_s)
    sent = max(0.0, gone_s - lead_s) / job.communication_s if job.communication_s > 0.0 else 0.0
    return compute_left_s, max(0.0, lead_s - gone_s), max(0.0, 1.0 - sent)


def _packs(packs: Sequence[int], jobs: int) -> Integers:
    """The packs by job, numbered from 0; -1 for jobs that share with no other here."""
    given = list(packs) or [-1] * jobs
    shared = [pack for pack in dict.fromkeys(given) if pack >= 0 and given.count(pack) > 1]
    return np.array([shared.index(pack) if pack in shared else -1 for pack in given], np.int64)
