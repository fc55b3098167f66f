"""Which jobs a rehearsal takes, and how they differ from those of the run: no pauses, the same messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.api import prepare
from testbed.engines.emulation.rehearsing import ENDLESS, rehearsed_jobs
from testbed.experiment.experiment import Scale

HELLO = prepare("hello").experiments[0]
MANAGED = prepare("arrivals").experiments[0]


def test_jobs_send_the_same_messages_without_end_and_without_pauses() -> None:
    slow = replace(HELLO, scale=Scale(4000.0, 10.0))
    for rehearsed, job in zip(rehearsed_jobs(slow), HELLO.jobs, strict=True):
        assert rehearsed.flows == job.flows
        assert rehearsed.iterations == ENDLESS
        assert all(phase.compute_s == 0.0 for phase in rehearsed.phases)
        sent = [phase.transfers for phase in job.phases if phase.transfers]
        assert [phase.transfers for phase in rehearsed.phases] == sent


def test_short_iterations_are_made_longer_all_messages_alike() -> None:
    short = replace(HELLO, scale=Scale(4000.0, 1e-3))
    for rehearsed, job in zip(rehearsed_jobs(short), HELLO.jobs, strict=True):
        before = [transfer.bytes for phase in job.phases for transfer in phase.transfers]
        after = [transfer.bytes for phase in rehearsed.phases for transfer in phase.transfers]
        factors = [new / old for new, old in zip(after, before, strict=True)]
        assert min(factors) > 1.0
        assert max(factors) == pytest.approx(min(factors))


def test_jobs_that_come_later_take_part_only_if_none_is_there_at_first() -> None:
    first, second = HELLO.jobs
    later = replace(second, start_s=3.0)
    assert [job.name for job in rehearsed_jobs(replace(HELLO, jobs=(first, later)))] == [first.name]
    assert [job.name for job in rehearsed_jobs(replace(HELLO, jobs=(later,)))] == [second.name]


def test_under_a_manager_those_take_part_that_fit_beside_each_other() -> None:
    jobs = rehearsed_jobs(MANAGED)
    gpus = [gpu for job in jobs for gpu in job.gpus]
    assert jobs
    assert len(gpus) == len(set(gpus))


def test_jobs_that_send_nothing_do_not_take_part() -> None:
    silent = replace(HELLO.jobs[0], phases=tuple(replace(phase, transfers=()) for phase in HELLO.jobs[0].phases))
    assert rehearsed_jobs(replace(HELLO, jobs=(silent,))) == ()
