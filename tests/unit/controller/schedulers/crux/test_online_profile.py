from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.crux.online_profile import (
    Reported,
    communication_per_iteration,
    iteration_length,
    measured_by_workers,
    work_per_iteration,
)

Burst = tuple[float, float, float]
"""Place in the iteration and length, as shares of it, and rate."""


def bytes_per_bin(
    period_s: float, count: int, bursts: list[Burst], bin_s: float, jitter: float = 0.0, seed: int = 0
) -> tuple[list[float], float]:
    """A series of ``count`` iterations whose length varies by ``jitter``, and their mean length."""
    random, start = Random(seed), 0.0
    edges: list[tuple[float, float, float]] = []
    for _ in range(count):
        length = period_s * (1 + random.gauss(0, jitter))
        late = length - period_s  # compute varies, bursts keep their length
        edges += [(start + place * period_s + late, share * period_s, rate) for place, share, rate in bursts]
        start += length
    bins = np.arange(int(start / bin_s) + 1) * bin_s
    total = np.zeros(len(bins) - 1)
    for begin, length, rate in edges:
        total += rate * np.clip(np.minimum(bins[1:], begin + length) - np.maximum(bins[:-1], begin), 0, None)
    return total.tolist(), start / count


@settings(max_examples=60, deadline=None)
@given(
    period_s=st.floats(0.02, 10.0),
    count=st.integers(15, 60),
    share=st.floats(0.05, 0.6),
    bins=st.integers(20, 60),
    jitter=st.floats(0.0, 0.03),
    seed=st.integers(0, 1000),
)
def test_the_iteration_is_found_within_2_percent(
    period_s: float, count: int, share: float, bins: int, jitter: float, seed: int
) -> None:
    series, mean_s = bytes_per_bin(period_s, count, [(0.3, share, 1e9)], period_s / bins, jitter, seed)
    assert iteration_length(series, period_s / bins) == pytest.approx(mean_s, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 3.0), st.floats(0.3, 0.6), st.integers(0, 1000))
def test_two_unequal_bursts_are_one_iteration(period_s: float, place: float, seed: int) -> None:
    bursts = [(0.05, 0.2, 1e9), (0.05 + place, 0.1, 1e9)]
    series, mean_s = bytes_per_bin(period_s, 30, bursts, period_s / 40, 0.01, seed)
    assert iteration_length(series, period_s / 40) == pytest.approx(mean_s, rel=0.02)


def test_short_bursts_have_strong_harmonics_that_are_not_taken_for_the_iteration() -> None:
    series, _ = bytes_per_bin(1.0, 20, [(0.5, 0.02, 1e9)], 0.01)
    assert iteration_length(series, 0.01) == pytest.approx(1.0, rel=0.002)


def test_a_length_between_the_bins_of_the_spectrum_is_interpolated() -> None:
    series, _ = bytes_per_bin(1.037, 20, [(0.5, 0.3, 1e9)], 0.02)
    assert iteration_length(series, 0.02) == pytest.approx(1.037, rel=0.001)


def test_equal_bursts_at_equal_distances_are_an_iteration_each() -> None:
    series, _ = bytes_per_bin(1.0, 20, [(0.1, 0.2, 1e9), (0.6, 0.2, 1e9)], 0.02)
    assert iteration_length(series, 0.02) == pytest.approx(0.5, rel=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.floats(0.0, 0.02), st.floats(0.95, 1.05), st.integers(0, 1000))
def test_workers_tell_how_many_equal_bursts_make_an_iteration(
    bursts: int, jitter: float, off: float, seed: int
) -> None:
    equal = [((0.05 + number) / bursts, 0.5 / bursts, 1e9) for number in range(bursts)]
    series, mean_s = bytes_per_bin(1.0, 30, equal, 1 / 64, jitter, seed)
    assert iteration_length(series, 1 / 64, off * mean_s) == pytest.approx(mean_s, rel=0.02)


@pytest.mark.parametrize(
    ("series", "bin_s", "message"),
    [
        ([1.0] * 100, 0.1, "does not repeat"),
        ([0.0] * 100, 0.1, "does not repeat"),
        ([1.0, 0.0] * 3, 0.1, "at least 8"),
        ([1.0, 0.0] * 30, 0.0, "longer than 0 s"),
    ],
)
def test_a_series_without_a_period_is_refused(series: list[float], bin_s: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        iteration_length(series, bin_s)


def two_workers() -> list[Reported]:
    """Two iterations of two workers of two GPUs; worker b is ready 0.1 s later."""
    return [
        Reported(worker, iteration, iteration + ready, iteration + end, (0.5, 0.4))
        for iteration in range(2)
        for worker, ready, end in (("a", 0.5, 0.9), ("b", 0.6, 0.95))
    ]


def test_work_is_busy_seconds_of_all_gpus_times_flops_over_iterations() -> None:
    assert work_per_iteration(two_workers(), 1e14) == pytest.approx(1.8e14)


def test_waiting_for_the_last_worker_is_not_communication() -> None:
    assert communication_per_iteration(two_workers()) == pytest.approx(0.35)


def test_the_phases_of_an_iteration_add_up() -> None:
    reports = [Reported("a", 0, 0.1, 0.2, (0.1,), phase=0), Reported("a", 0, 0.5, 0.8, (0.3,), phase=1)]
    assert communication_per_iteration(reports) == pytest.approx(0.4)
    assert work_per_iteration(reports, 1e12) == pytest.approx(4e11)


def test_a_profile_without_reports_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one reported iteration"):
        work_per_iteration([], 1e12)


def test_the_whole_profile_of_a_job() -> None:
    series, _ = bytes_per_bin(1.0, 20, [(0.6, 0.35, 1e9)], 0.02)
    found = measured_by_workers(two_workers(), 1e14, series, 0.02)
    assert (found.flops, found.communication_s) == (pytest.approx(1.8e14), pytest.approx(0.35))
    assert found.iteration_s == pytest.approx(1.0, rel=0.002)


def test_two_equal_bursts_of_an_iteration_are_not_taken_for_two_iterations() -> None:
    series, _ = bytes_per_bin(1.0, 20, [(0.1, 0.2, 1e9), (0.6, 0.2, 1e9)], 0.02)
    assert measured_by_workers(two_workers(), 1e14, series, 0.02).iteration_s == pytest.approx(1.0, rel=0.01)
