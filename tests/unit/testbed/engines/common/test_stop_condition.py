"""Enough of a managed run was undisturbed if completion times cannot have moved by more than a fiftieth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from testbed.api import prepare
from testbed.engines.common.iterations import HostIteration, iteration_rows, late_shares
from testbed.engines.common.stop_condition import AllManagedJobs
from workloads.iteration.protocol import PhaseTimes

EXPERIMENT = prepare("hello").experiments[0]
JOB = EXPERIMENT.jobs[0]
HOSTS = sorted({EXPERIMENT.fabric.host_of_gpu[gpu] for gpu in JOB.gpus})
GOAL = AllManagedJobs(EXPERIMENT, cast(Any, None), lambda: 0.0)


def iterations(count: int, late: dict[tuple[int, str], float]) -> list[HostIteration]:
    """``count`` iterations of a second on every host of the job; ``late`` by iteration and host."""
    made = []
    for number in range(count):
        times = PhaseTimes(number, number + 0.5, number + 1, number + 1, (0.5,) * len(JOB.gpus))
        for host in HOSTS:
            gpus = tuple(gpu for gpu in JOB.gpus if EXPERIMENT.fabric.host_of_gpu[gpu] == host)
            made.append(HostIteration(JOB.name, host, gpus, number, (times,), late.get((number, host), 0.0)))
    return made


def enough(reports: Sequence[HostIteration], disturbed: Sequence[tuple[float, float]] = ()) -> bool:
    return GOAL.undisturbed(iteration_rows(reports, EXPERIMENT, 0.0, disturbed), reports)


def test_hosts_that_are_late_in_one_iteration_hold_it_up_as_long_as_the_latest() -> None:
    reports = iterations(10, {(0, HOSTS[0]): 0.03, (0, HOSTS[1]): 0.05, (7, HOSTS[1]): 0.1})
    assert late_shares(reports) == {JOB.name: pytest.approx(0.015)}


def test_a_pause_that_ends_a_little_late_moves_a_managed_job_by_as_little() -> None:
    assert enough(iterations(20, {(3, HOSTS[0]): 0.038, (9, HOSTS[1]): 0.034}))


def test_late_pauses_that_add_more_than_a_fiftieth_to_a_job_are_too_many() -> None:
    assert not enough(iterations(20, {(number, HOSTS[0]): 0.03 for number in range(14)}))


def test_neighbours_may_touch_a_fiftieth_of_the_iterations() -> None:
    reports = iterations(100, {})
    assert enough(reports, [(10.2, 11.5)])
    assert not enough(reports, [(10.2, 12.5)])
