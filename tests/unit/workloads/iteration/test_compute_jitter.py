"""Compute times vary as asked, the same in every process, and the module stays light enough for the worker."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workloads
from workloads.iteration.compute_jitter import CUT, compute_time, straggler_factor
from workloads.job import Job, Phase, Straggler

FIXED = 0.5008955784971281


def job(
    jitter: float = 0.02, stragglers: tuple[Straggler, ...] = (), name: str = "j", draws: tuple[str, ...] = ("0", "1")
) -> Job:
    phases = (Phase(0.5, 0.0, "ring"), Phase(0.25, 0.0, "ring"))
    return Job(name, "bert", ("h0g0", "h0g1"), phases, (), 1e12, 10, jitter=jitter, stragglers=stragglers, draws=draws)


def test_without_jitter_every_gpu_computes_its_phase() -> None:
    assert [compute_time(job(0.0), "h0g0", 3, phase, 1) for phase in (0, 1)] == [0.5, 0.25]


def test_jitter_keeps_the_mean_and_has_the_deviation_asked_for() -> None:
    times = [compute_time(job(0.02), "h0g0", iteration, 0, 1) for iteration in range(4000)]
    assert statistics.mean(times) == pytest.approx(0.5, rel=0.002)
    assert statistics.stdev(times) == pytest.approx(0.01, rel=0.05)


@given(st.floats(0, 0.3), st.integers(0, 1000), st.integers(0, 2**31))
def test_every_time_is_positive_and_fixed(jitter: float, iteration: int, seed: int) -> None:
    time = compute_time(job(jitter), "h0g0", iteration, 0, seed)
    assert time > 0
    assert time == compute_time(job(jitter), "h0g0", iteration, 0, seed)


def test_no_time_leaves_three_deviations() -> None:
    times = [compute_time(job(0.02), "h0g0", iteration, 0, 1) for iteration in range(4000)]
    assert max(abs(time - 0.5) for time in times) <= 0.5 * CUT * 0.02


def test_every_coordinate_draws_anew_and_the_same_ones_draw_the_same() -> None:
    draws = [
        compute_time(job(), "h0g0", 0, 0, 1),
        compute_time(job(), "h0g1", 0, 0, 1),
        compute_time(job(), "h0g0", 1, 0, 1),
        2 * compute_time(job(), "h0g0", 0, 1, 1),
        compute_time(job(), "h0g0", 0, 0, 2),
        compute_time(job(draws=("2", "3")), "h0g0", 0, 0, 1),
    ]
    assert len(set(draws)) == len(draws)
    assert compute_time(job(), "h0g0", 0, 0, 1) == draws[0]
    assert compute_time(job(name="k"), "h0g0", 0, 0, 1) == draws[0]


def test_a_draw_is_fixed_for_good() -> None:
    """The same number in every process and release: results of old runs stay comparable."""
    assert compute_time(job(), "h0g0", 0, 0, 1) == pytest.approx(FIXED, rel=1e-12)


def test_a_straggler_takes_its_factor_longer_and_its_peers_do_not() -> None:
    slow = job(0.0, (Straggler("h0g1", 1.5), Straggler("h0g1", 2.0)))
    assert (straggler_factor(slow, "h0g0"), straggler_factor(slow, "h0g1")) == (1.0, 3.0)
    assert compute_time(slow, "h0g1", 0, 0, 1) == pytest.approx(1.5)


def test_a_phase_the_job_lacks_is_an_error() -> None:
    with pytest.raises(IndexError):
        compute_time(job(), "h0g0", 0, 2, 1)


def test_the_worker_gets_it_without_numpy() -> None:
    program = (
        "import workloads.iteration.compute_jitter, sys; "
        "print([m for m in ('numpy', 'pydantic', 'scapy') if m in sys.modules])"
    )
    root = str(Path(workloads.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"
