from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.schedulers.crux.pair_simulation import State, sending_times
from testbed.fluid.periodic import TOLERANCE, simulate
from workloads.periodic_job import PeriodicJob, on_one_link

ROOT = Path(__file__).parents[4]


def job(compute: float, communication: float, lead: float, *, gpus: float = 1, offset: float = 0) -> PeriodicJob:
    return PeriodicJob(compute, lead, {"link": communication}, gpus, offset)


EXAMPLE_1 = [job(2, 2, 2, gpus=10, offset=2), job(1, 1, 1, gpus=10, offset=1)]
EXAMPLE_2 = [job(4, 1, 2, gpus=2), job(2, 3, 1, gpus=12, offset=1)]


@pytest.mark.parametrize(
    ("jobs", "levels", "sent", "idle"),
    [
        (EXAMPLE_1, (0, 1), (6, 3), (6, 9)),
        (EXAMPLE_1, (1, 0), (4, 6), (8, 6)),
        (EXAMPLE_2, (0, 1), (3, 7), (0, 7)),
        (EXAMPLE_2, (1, 0), (3, 9), (0, 6)),
    ],
)
def test_the_examples_of_the_crux_paper_come_out_exactly(
    jobs: list[PeriodicJob], levels: tuple[int, int], sent: tuple[float, float], idle: tuple[float, float]
) -> None:
    found = simulate(jobs, levels, 12.0)
    assert found.sent_s == sent
    assert tuple(12.0 - busy for busy in found.busy_s) == idle


def test_example_1_has_the_utilisations_of_the_paper() -> None:
    assert simulate(EXAMPLE_1, (0, 1), 12.0).utilization == 0.375
    assert simulate(EXAMPLE_1, (1, 0), 12.0).utilization == pytest.approx(5 / 12)


def test_a_job_alone_has_its_own_period() -> None:
    found = simulate([job(2, 3, 1)], (0,), 40.0)
    assert (found.iterations, found.busy_s, found.sent_s) == ((10,), (20.0,), (30.0,))


def test_a_job_that_sends_nothing_is_never_idle() -> None:
    assert simulate([PeriodicJob(1.5, 1.5)], (0,), 100.0).utilization == pytest.approx(1.0)


def test_equals_on_a_level_share_the_link_evenly() -> None:
    found = simulate([job(1, 1, 1), job(1, 1, 1)], (0, 0), 30.0)
    assert found.iterations == (10, 10)


def test_a_link_half_used_by_each_slows_nobody() -> None:
    half = {"own": 2.0, "link": 1.0}
    jobs = [PeriodicJob(1, 1, {**half, "own-0": 2.0}), PeriodicJob(1, 1, {"own-1": 2.0, "link": 1.0})]
    assert simulate(jobs, (0, 1), 30.0).iterations == (10, 10)


def test_the_most_loaded_of_several_links_sets_the_speed() -> None:
    first, second = PeriodicJob(0, 0, {"a": 1.0}), PeriodicJob(0, 0, {"a": 0.5, "b": 1.0})
    found = simulate([first, second], (1, 0), 10.0)
    assert found.sent_s == pytest.approx((5.0, 10.0))


LEVELS_OF_THREE = [(0, 1, 2), (2, 1, 0), (0, 0, 0), (1, 0, 1)]
THREE = [job(0.7, 0.9, 0.3, gpus=8), job(0.31, 0.2, 0.31, gpus=16), job(1.3, 0.8, 0.5, gpus=32)]


@pytest.mark.parametrize("levels", LEVELS_OF_THREE)
def test_the_chosen_horizon_gives_the_utilisation_of_a_much_longer_one(levels: tuple[int, ...]) -> None:
    chosen = simulate(THREE, levels)
    longer = simulate(THREE, levels, 64 * chosen.horizon_s)
    assert chosen.utilization == pytest.approx(longer.utilization, rel=TOLERANCE)


@pytest.mark.parametrize("levels", LEVELS_OF_THREE)
def test_a_given_horizon_is_averaged_plainly(levels: tuple[int, ...]) -> None:
    found = simulate(THREE, levels, 77.0)
    assert found.busy_gpus == pytest.approx(
        sum(g * busy for g, busy in zip(found.gpus, found.busy_s, strict=True)) / 77
    )


def four_jobs(seed: int) -> tuple[list[PeriodicJob], list[int]]:
    """Jobs of many lengths, all on one link."""
    draw = Random(seed)
    computes = [draw.uniform(0.1, 1.5) for _ in range(4)]
    jobs = [job(c, c * draw.uniform(0.2, 1.2), c * draw.uniform(0.3, 1.0), gpus=draw.choice([8, 64])) for c in computes]
    return jobs, [draw.randrange(4) for _ in jobs]


def test_the_chosen_horizon_is_within_a_thousandth_of_the_limit_nearly_always() -> None:
    """The plain average over very long stands for the limit."""
    errors = []
    for seed in range(100):
        jobs, levels = four_jobs(seed)
        limit = simulate(jobs, levels, 20_000.0).utilization
        errors.append(abs(simulate(jobs, levels).utilization / limit - 1))
    assert sorted(errors)[90] < TOLERANCE
    assert max(errors) < 10 * TOLERANCE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 2.0), "0 <= lead_s <= compute_s"),
        ((1.0, 1.0, {"link": -1.0}), "no load below 0"),
        ((0.0, 0.0), "longer than 0 s"),
        ((1.0, 1.0, {}, 1.0, 1.0), "offset_s"),
    ],
)
def test_what_cannot_be_repeated_for_ever_is_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PeriodicJob(*arguments)  # type: ignore[arg-type]


def test_a_level_for_each_job_and_a_horizon_are_needed() -> None:
    with pytest.raises(ValueError, match="a level for each"):
        simulate([job(1, 1, 1)], ())
    with pytest.raises(ValueError, match="longer than 0 s"):
        simulate([job(1, 1, 1)], (0,), 0.0)


quarters = st.integers(0, 8).map(lambda count: count / 4)
patterns = st.builds(
    lambda compute, communication, share: (compute, communication + 0.25, compute * share / 4),
    quarters,
    quarters,
    st.integers(0, 4),
)


@given(patterns, patterns)
@settings(max_examples=100)
def test_two_jobs_send_as_the_two_job_simulation_says(
    one: tuple[float, float, float], two: tuple[float, float, float]
) -> None:
    found = simulate([job(*one), job(*two)], (0, 1), 40.0)
    expected = sending_times(State.at(on_one_link(*one), 0.0), State.at(on_one_link(*two), 0.0), 40.0)
    assert found.sent_s == pytest.approx(expected, abs=1e-6)


def exact(jobs: Sequence[PeriodicJob], levels: Sequence[int], horizon: int) -> tuple[list[Fraction], list[Fraction]]:
    """Busy and sent seconds by fractions and from the words of the model alone: slow."""
    loads = [{link: Fraction(load) for link, load in item.loads.items()} for item in jobs]
    alone = [max(load.values(), default=Fraction(0)) for load in loads]
    start = [(Fraction(item.compute_s), Fraction(item.lead_s), own) for item, own in zip(jobs, alone, strict=True)]
    state, count = [list(item) for item in start], range(len(jobs))
    busy, sent, now = [Fraction(0)] * len(jobs), [Fraction(0)] * len(jobs), Fraction(0)
    while now < horizon:
        wants = [index for index in count if state[index][1] == 0 and state[index][2] > 0]
        speed = fair(wants, levels, loads, alone)
        ends = [left for item in state for left in item[:2] if left > 0]
        ends += [state[index][2] / speed[index] for index in wants if speed[index] > 0]
        step = min(*ends, horizon - now) if ends else horizon - now
        now += step
        for index in count:
            if state[index][0] > 0:
                busy[index] += step
            sent[index] += speed.get(index, Fraction(0)) * step
            done = (step, step, speed.get(index, Fraction(0)) * step)
            state[index] = [max(Fraction(0), left - less) for left, less in zip(state[index], done, strict=True)]
            if state[index][0] == state[index][2] == 0:
                state[index] = list(start[index])
    return busy, sent


def fair(
    wants: Sequence[int], levels: Sequence[int], loads: Sequence[dict[str, Fraction]], alone: Sequence[Fraction]
) -> dict[int, Fraction]:
    free = {link: Fraction(1) for load in loads for link in load}
    speed = dict.fromkeys(wants, Fraction(0))
    for level in sorted({levels[index] for index in wants}):
        rising = {index for index in wants if levels[index] == level}
        while rising:
            takes = {link: sum(loads[i].get(link, Fraction(0)) / alone[i] for i in rising) for link in free}
            rise = min(free[link] / need for link, need in takes.items() if need > 0)
            for index in rising:
                speed[index] += rise
            free = {link: left - rise * takes[link] for link, left in free.items()}
            rising = {i for i in rising if all(free[link] > 0 for link, load in loads[i].items() if load > 0)}
    return speed


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[PeriodicJob], list[int]]:
    count = draw(st.integers(2, 4))
    jobs = []
    for _ in range(count):
        compute, _, lead = draw(patterns)
        loads = draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.25, 0.5, 1.0, 1.5]), min_size=1))
        jobs.append(PeriodicJob(compute, lead, loads))
    return jobs, draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))


@given(cases())
@settings(max_examples=60, deadline=None)
@example(
    ([PeriodicJob(1, 1, {"a": 1.0, "b": 0.5}), PeriodicJob(0, 0, {"b": 1.0}), PeriodicJob(0, 0, {"a": 1.0})], [1, 1, 1])
)
def test_many_jobs_do_what_exact_arithmetic_says(case: tuple[list[PeriodicJob], list[int]]) -> None:
    jobs, levels = case
    found = simulate(jobs, levels, 25.0)
    busy, sent = exact(jobs, levels, 25)
    assert found.busy_s == pytest.approx([float(value) for value in busy], abs=1e-5)
    assert found.sent_s == pytest.approx([float(value) for value in sent], abs=1e-5)


def test_beyond_ten_jobs_nothing_changes() -> None:
    jobs = [job(1.0 + index / 8, 0.25, 0.5, gpus=index + 1) for index in range(12)]
    padded = simulate([*jobs, *(PeriodicJob(1, 1) for _ in range(0))], range(12), 60.0)
    busy, _ = exact(jobs, range(12), 60)
    assert padded.busy_s == pytest.approx([float(value) for value in busy], abs=1e-5)


def test_without_any_directory_for_its_cache_it_compiles_all_the_same(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    source = (ROOT / "testbed" / "fluid" / "compiled.py").read_text("utf-8")
    (package / "compiled.py").write_text(source)
    blocked = tmp_path / "file"  # a cache under a file can be made by nobody, root included
    blocked.touch()
    (package / "__pycache__").touch()
    (package / "work.py").write_text("from compiled import compiled\n@compiled\ndef work(a):\n    return a + 1\n")
    done = subprocess.run(
        [sys.executable, "-c", "from work import work; print(work(1))"],
        cwd=package,
        env={**os.environ, "HOME": str(blocked), "XDG_CACHE_HOME": str(blocked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr
