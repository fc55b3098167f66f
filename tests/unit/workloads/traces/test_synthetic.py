"""The synthetic trace has Lingjun's published statistics, and its label."""

from __future__ import annotations

import statistics

import pytest

from workloads.models.catalogue import CATALOGUE
from workloads.traces.measures import concurrency_of, quantile, share_up_to, size_steps
from workloads.traces.models import BY_GPUS, SOURCE_NAMES, assign_models, known_model
from workloads.traces.synthetic import MODELS, lingjun_like
from workloads.traces.trace import Trace, TraceJob, window

SEEDS = (1, 2, 3)
TRACES = {seed: lingjun_like(seed) for seed in SEEDS}

FIGURE_4 = {1: 0.12, 6.18: 0.25, 11.34: 0.58, 16.5: 0.70, 37.15: 0.85, 68.1: 0.92, 259.1: 0.99, 512: 1.0}
"""GPUs -> share of jobs of at most as many, where figure 4 of the paper steps, as read off."""

QUANTILES = {0.25: 1, 0.5: 4, 0.75: 18, 0.9: 165, 0.95: 661}
"""Share of jobs -> minutes, published for the dataset."""


def test_a_seed_gives_one_trace_and_another_seed_another() -> None:
    assert lingjun_like(1) == TRACES[1]
    assert TRACES[1].jobs != TRACES[2].jobs


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_labelled_synthetic_and_accounts_for_every_job(seed: int) -> None:
    trace = TRACES[seed]
    assert trace.synthetic
    assert trace.label.endswith("(synthetic)")
    assert "synthetic" in trace.notes[0]
    assert len(trace.jobs) + sum(trace.skipped.values()) == 5000


@pytest.mark.parametrize("seed", SEEDS)
def test_job_sizes_lie_within_6_points_of_figure_4(seed: int) -> None:
    steps = size_steps(TRACES[seed])
    assert max(abs(share_up_to(steps, gpus) - share) for gpus, share in FIGURE_4.items()) < 0.06


@pytest.mark.parametrize("seed", SEEDS)
def test_run_times_have_the_published_quantiles(seed: int) -> None:
    minutes = [job.duration_s / 60 for job in TRACES[seed].jobs]
    for share, published in QUANTILES.items():
        assert quantile(minutes, share) == pytest.approx(published, rel=0.3)
    assert max(minutes) <= 20631


@pytest.mark.parametrize("seed", SEEDS)
def test_peaks_are_those_of_figure_5(seed: int) -> None:
    found = concurrency_of(TRACES[seed], 14 * 86400)
    assert 34 <= found.peak_jobs <= 37
    assert 1450 <= found.peak_gpus <= 1536


def test_mean_gpus_and_gpu_hours_are_near_the_published() -> None:
    gpus = statistics.mean(concurrency_of(trace, 14 * 86400).mean_gpus for trace in TRACES.values())
    hours = [job.gpu_seconds / 3600 for trace in TRACES.values() for job in trace.jobs]
    assert gpus == pytest.approx(678, rel=0.25)
    assert statistics.mean(hours) == pytest.approx(79, rel=0.25)
    assert max(hours) <= 22007


def test_all_jobs_can_be_gpu_jobs_and_come_as_they_come() -> None:
    trace = lingjun_like(1, gpu_share=1, keep_peaks=False)
    assert (len(trace.jobs), dict(trace.skipped)) == (5000, {})


def test_a_larger_cluster_with_more_jobs_has_proportional_peaks() -> None:
    found = concurrency_of(lingjun_like(1, gpus=10_000, jobs=25_000), 14 * 86400)
    assert 5 * 60 < found.mean_jobs * 5 < 5 * 150
    assert found.peak_gpus <= 7680


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gpus": 4}, "gpus must be at least"),
        ({"days": 0}, "days must be above 0"),
        ({"jobs": 0}, "at least one GPU job"),
        ({"gpu_share": 2}, "at least one GPU job"),
    ],
)
def test_impossible_numbers_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lingjun_like(1, **wrong)  # type: ignore[arg-type]


def test_every_job_gets_a_model_of_the_catalogue() -> None:
    found = assign_models(TRACES[1], 1)
    assert set(found) == {job.name for job in TRACES[1].jobs}
    assert set(found.values()) <= set(CATALOGUE)
    assert {model for _, model in SOURCE_NAMES} <= set(CATALOGUE)
    assert {model for _, weights in BY_GPUS for model in weights} <= set(CATALOGUE)


def test_known_names_decide_and_the_seed_decides_the_rest() -> None:
    jobs = (TraceJob("a", 0, 1, 1, "llama_30b"), TraceJob("b", 0, 1, 1, "BERT"), TraceJob("c", 0, 1, 1, "ResNet"))
    assert list(assign_models(Trace("t", jobs, {}), 9).values()) == ["crux-gpt", "crux-bert", "crux-resnet"]
    assert {name for name in MODELS if known_model(name)} == {
        "llama",
        "GPT-13b",
        "ResNet",
        "GPT-3b",
        "GPT-7b",
        "65b",
        "GPT-13B",
        "llama_30b",
        "GPT",
        "word_embedding",
        "gpt",
    }
    first, again, other = (assign_models(TRACES[1], seed) for seed in (1, 1, 2))
    assert first == again != other


def test_a_window_keeps_the_models_of_the_whole() -> None:
    whole, part = assign_models(TRACES[1], 1), assign_models(window(TRACES[1], 86400, 2 * 86400), 1)
    assert part
    assert all(whole[name] == model for name, model in part.items())
