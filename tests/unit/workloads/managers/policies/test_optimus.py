"""Optimus: who gets how many GPUs, as an oracle and with what it fits online."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from testbed.reproduce.managers.oracles import pollux_oracle, small_traces
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.policies.fitting import LossCurve
from workloads.managers.policies.optimus import Optimus, step_s
from workloads.managers.registry import manager
from workloads.traces.simulators.pollux import jobs

CURVE = LossCurve(1.0, 1.0, 0.0)
EPOCHS = 18.0
"""When that curve converges."""


def test_one_gpu_sends_nothing() -> None:
    job = Waiting("job", 4, compute_s=1.0, communication_s=0.6)
    assert [step_s(job, gpus) for gpus in (1, 2, 4)] == pytest.approx([4.0, 2.0 + 0.6 * 1.0 / 1.5, 1.6])


def test_a_job_on_one_gpu_that_grows_sends_what_it_declares_on_two() -> None:
    job = Waiting("job", 1, compute_s=1.0, communication_s=0.6)
    assert [step_s(job, gpus) for gpus in (1, 2, 4)] == pytest.approx([1.0, 0.5 + 0.6, 0.25 + 0.6 * 1.5])


def test_a_job_that_sends_nothing_grows_as_far_as_that_holds() -> None:
    job = Waiting("job", 1, duration_s=100.0, compute_s=1.0, max_gpus=8, ring=(4, 0.6))
    assert [step_s(job, gpus) for gpus in (1, 2, 3, 4)] == pytest.approx([1.0, 0.5, 1 / 3, 0.25 + 0.6])
    assert Optimus().allocate([job], 8, 0.0) == {"job": 3}


def test_a_job_without_speeds_is_taken_to_scale_perfectly() -> None:
    unknown = Waiting("unknown", 4, duration_s=100.0)
    assert Optimus().allocate([unknown], 8, 0.0) == {"unknown": 4}
    short = replace(unknown, step_s=(4.0, 2.0))  # measured on fewer GPUs than it asks for
    assert Optimus().allocate([short], 8, 0.0) == {"unknown": 2}


def test_elastic_jobs_get_their_least_or_nothing_in_order_of_submission() -> None:
    elastic = [Waiting(f"job{n}", 4, duration_s=100.0, compute_s=1.0, min_gpus=4, max_gpus=8) for n in range(3)]
    assert Optimus().allocate([*elastic, Waiting("small", 1, duration_s=9.0)], 9, 0.0) == {
        "job0": 4,
        "job1": 4,
        "job2": 0,
        "small": 1,
    }


def test_a_job_of_unknown_length_that_gains_nothing_leaves_gpus_to_others() -> None:
    flat = Waiting("flat", 4, step_s=(1.0, 1.0, 1.0, 1.0))
    known = Waiting("known", 4, duration_s=100.0, compute_s=1.0)
    assert Optimus().allocate([flat, known], 6, 0.0) == {"flat": 1, "known": 4}


def test_measured_steps_replace_the_formula_and_bound_the_gpus() -> None:
    job = Waiting("job", 2, duration_s=100.0, step_s=(4.0, 3.0, 2.9), max_gpus=8, compute_s=9.0)
    assert [step_s(job, gpus) for gpus in (1, 3, 4)] == [4.0, 2.9, inf]
    assert Optimus().allocate([job], 8, 0.0) == {"job": 3}


def test_a_gpu_goes_where_it_shortens_a_job_most() -> None:
    scales = Waiting("scales", 1, duration_s=100.0, step_s=(4.0, 2.0, 1.3, 1.0), max_gpus=4)
    sends = Waiting("sends", 1, duration_s=100.0, step_s=(4.0, 3.9, 3.85, 3.8), max_gpus=4)
    assert Optimus().allocate([sends, scales], 4, 0.0) == {"sends": 1, "scales": 3}
    assert Optimus().allocate([sends, scales], 1, 0.0) == {"sends": 1, "scales": 0}


def test_jobs_with_another_share_are_placed_anew_together() -> None:
    fabric = pollux_oracle.servers_of_4(2)
    ledger = Ledger(manager("equal-split", policy="optimus", options={"policy": {"round_s": 60.0}}), fabric)
    perfect = tuple(8.0 / gpus for gpus in range(1, 9))
    left_s = {"one": 900.0, "two": 1000.0}
    for name in left_s:
        ledger.submit(Waiting(name, 4, 0.0, left_s[name], remaining_s=left_s[name], step_s=perfect, max_gpus=8))
        ledger.decide(0.0 if name == "one" else 10.0, left_s.get)
    ledger.decide(60.0, left_s.get)
    hosts = [Counter(fabric.host_of_gpu[gpu] for gpu in each.gpus) for each in ledger.state.running.values()]
    assert sorted(len(counts) for counts in hosts) == [1, 1]
    assert sorted(sum(counts.values()) for counts in hosts) == [4, 4]


def mean_jct_s(folder: Path, **options: Any) -> float:
    """Of a small workload; its jobs have losses that converge when they end."""
    read = list(jobs(small_traces.write_pollux(folder, 1)))
    fabric = pollux_oracle.servers_of_4(small_traces.SERVERS)
    asked = [
        replace(job, epoch_s=(job.duration_s or 0.0) / EPOCHS, loss_of=losses_of(job))
        for job in pollux_oracle.asked(read, len(fabric.gpus))
    ]
    chosen = manager("equal-split", policy="optimus", options={"policy": {"round_s": 60.0, **options}})
    ended = Play(chosen, fabric, asked, pollux_oracle.measured_speed(read, fabric)).run()
    return fmean(each.jct_s if each.jct_s is not None else inf for each in ended)


def losses_of(job: Waiting) -> Any:
    epoch_s = (job.duration_s or 0.0) / EPOCHS
    return lambda done_s: CURVE.loss(done_s / epoch_s)


def test_what_it_fits_online_serves_nearly_as_well_as_an_oracle(tmp_path: Path) -> None:
    known = mean_jct_s(tmp_path)
    assert mean_jct_s(tmp_path, speeds="measured", lengths="measured") == pytest.approx(known, rel=0.15)


def test_speeds_are_measured_on_the_gpus_that_a_job_has_had() -> None:
    fabric = pollux_oracle.servers_of_4(1)
    job = Waiting("job", 2, 0.0, 1000.0, remaining_s=1000.0, max_gpus=2)
    ledger = Ledger(manager(policy="optimus", options={"policy": {"speeds": "measured", "round_s": 60.0}}), fabric)
    ledger.submit(job)
    for now_s, left_s in ((0.0, 1000.0), (60.0, 955.0), (120.0, 910.0)):  # on two GPUs, at three quarters of its speed
        ledger.decide(now_s, {"job": left_s}.get)
    ((gpus, seconds),) = ledger.state.running["job"].job.measured_s
    assert gpus == 2
    assert seconds == pytest.approx(60 / 45)


def test_lengths_cannot_be_fitted_to_losses_that_nobody_says() -> None:
    policy = Optimus(lengths="measured")
    assert policy.refusal(None, Waiting("job", 1)) == (  # type: ignore[arg-type]
        "job 'job' has no losses, which 'lengths: measured' of optimus fits"
    )
    with pytest.raises(ValueError, match="option 'speeds' of optimus must be known or measured, not 'guessed'"):
        Optimus(speeds="guessed")
