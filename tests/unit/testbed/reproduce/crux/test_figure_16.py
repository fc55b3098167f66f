from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import product

import pytest

from controller.decision import ClusterView, JobArrived
from controller.schedulers.crux.priority import priority_order
from controller.schedulers.crux.scheduler import Crux
from controller.schedulers.taccl_star import taccl_star_paths as of_flows
from testbed.progress import Progress
from testbed.reproduce.crux import figure_16_population
from testbed.reproduce.crux.figure_16 import (
    GENERATORS,
    PAPER,
    Score,
    linear_order,
    reproduce,
    scores,
    summarise,
    valid_levels,
)
from testbed.reproduce.crux.figure_16_cases import LEVELS, UTILIZATION, Case, generate
from testbed.reproduce.crux.figure_16_mechanisms import (
    compressions,
    crux_order,
    crux_paths,
    orders,
    taccl_star_paths,
)
from testbed.reproduce.crux.figure_16_optimum import Yardstick
from testbed.reproduce.paper_experiment import Settings
from workloads.analysis import isolated
from workloads.models.calibration import CALIBRATED

CASES = [generate(3, index) for index in range(30)]
POPULATION = [figure_16_population.generate(3, index) for index in range(30)]


def test_cases_are_as_small_as_the_papers() -> None:
    for case in CASES + POPULATION:
        assert len(case.jobs) == 5
        assert 8 <= len(case.fabric.hosts) <= 20
        tiers = Counter(switch.tier for switch in case.fabric.switches.values())
        assert 2 <= tiers["tor"] <= 4 and tiers["agg"] == 2 and tiers["core"] == 0
        assert {len(host.gpus) for host in case.fabric.hosts.values()} == {8}


def test_no_gpu_and_no_nic_serves_two_jobs() -> None:
    for case in CASES:
        users = Counter(gpu for job in case.jobs for gpu in job.gpus)
        nics = Counter(nic for job in case.jobs for nic in {case.fabric.nic_of_gpu[gpu] for gpu in job.gpus})
        assert set(users.values()) == set(nics.values()) == {1}


def test_every_job_leaves_its_tor_and_all_its_flows_cross_the_chosen_switch() -> None:
    for case in CASES + POPULATION:
        for switch in (0, 1):
            paths = case.paths((switch,) * 5)
            for job in case.jobs:
                up = {link for flow in job.flows for link in paths[flow.id] if "->agg" in link}
                assert len(up) >= 2 and all(link.endswith(f"->agg{switch}") for link in up)


def test_whatever_the_paths_some_jobs_meet() -> None:
    for case in CASES + POPULATION:
        leaving = Counter(
            link.partition("->")[0]
            for choice in case.choices()
            for link in choice.candidates[0]
            if link.endswith("->agg0")
        )
        assert max(leaving.values()) >= 3


def test_a_job_alone_on_its_path_has_a_utilisation_of_the_papers_range() -> None:
    for case in CASES[:10]:
        paths = case.paths((1, 0, 1, 0, 1))
        for job in case.jobs:
            alone = isolated(job, case.fabric, paths)
            assert UTILIZATION[0] - 1e-9 <= alone.utilization <= 1.0


def test_a_job_of_the_population_trains_what_jobs_of_its_size_train_in_the_papers_testbed() -> None:
    trained = {8: {"crux-bert", "crux-resnet"}, 16: {"crux-bert"}, 24: {"crux-bert"}}
    for case in POPULATION:
        for job in case.jobs:
            assert job.model in trained.get(len(job.gpus), {"crux-gpt"})


def test_in_the_population_no_gpu_serves_two_jobs_and_many_nics_do() -> None:
    shared = 0
    for case in POPULATION:
        assert max(Counter(gpu for job in case.jobs for gpu in job.gpus).values()) == 1
        nics = Counter(nic for job in case.jobs for nic in {case.fabric.nic_of_gpu[gpu] for gpu in job.gpus})
        assert max(nics.values()) <= 2
        shared += max(nics.values()) == 2
    assert shared > len(POPULATION) / 2


@pytest.mark.parametrize(("size", "hosts"), [(8, 2), (16, 4), (32, 4), (48, 6)])
def test_alone_on_its_path_a_job_of_the_population_takes_its_calibrated_time_by_its_ring(size: int, hosts: int) -> None:
    found = 0
    for case in POPULATION:
        paths = case.paths((0,) * 5)
        for job in case.jobs:
            if len(job.gpus) != size or len({case.fabric.host_of_gpu[gpu] for gpu in job.gpus}) != hosts:
                continue
            model = CALIBRATED[job.model]
            ring = (2 * (hosts - 1) / hosts) / (2 * (model.hosts - 1) / model.hosts)
            alone = isolated(job, case.fabric, paths)
            assert alone.communication_s == pytest.approx(model.communication_s * ring)
            assert alone.compute_s == model.compute_s
            if hosts == model.hosts:
                assert alone.utilization == pytest.approx(model.utilization)
            found += 1
    assert found


def test_in_the_population_larger_jobs_communicate_longer() -> None:
    times: dict[int, set[float]] = {}
    for case in POPULATION:
        for job in case.jobs:
            times.setdefault(len(job.gpus), set()).add(isolated(job, case.fabric, case.paths((0,) * 5)).communication_s)
    assert max(times[8]) <= max(times[16]) < min(times[32])


def test_fluids_have_the_period_of_the_jobs_they_stand_for() -> None:
    for case in CASES[:10]:
        paths = case.paths((0,) * 5)
        for job, choice in zip(case.jobs, case.choices(), strict=True):
            assert choice.on(0).period_s == pytest.approx(isolated(job, case.fabric, paths).iteration_s)
            assert choice.pattern.gpus == len(job.gpus)


def test_every_gpu_works_at_the_same_rate() -> None:
    rates = [job.flops / len(job.gpus) / job.compute_s for case in CASES + POPULATION for job in case.jobs]
    assert rates == pytest.approx([rates[0]] * len(rates))


def test_a_case_depends_on_its_seed_and_index_alone() -> None:
    assert generate(3, 7).jobs == CASES[7].jobs
    assert generate(4, 7).jobs != CASES[7].jobs
    assert figure_16_population.generate(3, 7).jobs == POPULATION[7].jobs
    assert figure_16_population.generate(4, 7).jobs != POPULATION[7].jobs


def single_flow(case: Case) -> Case:
    """The same jobs with one flow each, that of their first crossing: then a job's path is a flow's path."""
    jobs = []
    for job in case.jobs:
        paths = case.paths((0,) * 5)
        flow = next(flow for flow in job.flows if len(paths[flow.id]) == 4)
        phases = tuple(
            dataclasses.replace(phase, transfers=tuple(t for t in phase.transfers if t.flow == flow.id))
            for phase in job.phases
        )
        jobs.append(dataclasses.replace(job, flows=(flow,), phases=phases))
    return Case(case.fabric, tuple(jobs))


def test_paths_of_whole_jobs_are_those_of_the_schedulers_where_a_job_is_one_flow() -> None:
    for case in map(single_flow, CASES[:10]):
        view = ClusterView(case.fabric, {job.name: job for job in case.jobs})
        assert case.paths(crux_paths(case, case.choices())) == Crux().decide(view, JobArrived("job0")).paths
        assert case.paths(taccl_star_paths(case.choices())) == of_flows(case.fabric, case.jobs)


def test_orders_rank_every_job_once() -> None:
    for case in CASES[:5]:
        for order in orders(case, case.choices(), (0, 1, 0, 1, 0)).values():
            assert sorted(order) == [0, 1, 2, 3, 4]


def test_the_order_and_levels_of_crux_are_those_of_the_scheduler() -> None:
    for case in map(single_flow, CASES[:10]):
        view = ClusterView(case.fabric, {job.name: job for job in case.jobs}, level_count=3, seed=1)
        decision = Crux().decide(view, JobArrived("job0"))
        paths = crux_paths(case, case.choices())
        order = orders(case, case.choices(), paths)["crux"]
        priority = decision.notes["priority"]
        assert isinstance(priority, dict)
        assert tuple(f"job{index}" for index in order) == priority_order(priority)
        levels = compressions(case, paths, order, 1)["crux"]
        assert {
            job.name: level for job, level in zip(case.jobs, levels, strict=True) if job.name in decision.levels
        } == (decision.levels)


def test_pairs_keep_their_order_and_strangers_go_by_strength() -> None:
    assert linear_order([1, 0, 0, 1], [(0, 1), (2, 3)], [9.0, 1.0, 5.0, 7.0]) == [2, 3, 1, 0]


def test_valid_levels_never_put_the_higher_of_a_pair_below_the_lower() -> None:
    found = list(valid_levels([0, 1, 2, 3, 4], [(0, 1), (3, 4)]))
    assert found and all(levels[0] <= levels[1] and levels[3] <= levels[4] for levels in found)
    assert (1, 1, 0, 0, 2) in found and len(found) == len(set(found))


@pytest.mark.parametrize("generator", GENERATORS)
def test_nothing_beats_the_optimum_or_falls_below_the_worst(generator: str) -> None:
    for index in range(2):
        for label, score in scores(generator, 1, index).items():
            assert score.worst - 1e-12 <= score.found <= score.best + 1e-12, label


def test_the_joint_optimum_is_no_worse_than_any_mechanism_with_the_others_at_their_best() -> None:
    found = scores("population", 1, 0)
    joint = found["end-to-end crux"]
    assert joint.best == found["path-selection crux"].best >= found["path-selection crux"].found
    assert joint.worst <= found["path-selection crux"].worst
    assert joint.found <= found["path-selection crux"].found


def test_the_joint_worst_is_that_of_all_paths_and_levels_one_by_one() -> None:
    yardstick = Yardstick(POPULATION[0].choices())
    every = [
        yardstick.utilization(paths, levels)
        for paths in yardstick.all_paths()
        for levels in product(range(LEVELS), repeat=5)
    ]
    assert yardstick.worst_levels_and_paths(LEVELS) == pytest.approx(min(every))
    assert yardstick.best_paths(LEVELS)[0] == pytest.approx(max(every))


def test_a_clamp_of_one_orders_by_intensity() -> None:
    for case in CASES[:10]:
        paths = (0, 1, 0, 1, 0)
        strength = [isolated(job, case.fabric, case.paths(paths)).communication_s for job in case.jobs]
        by_intensity = sorted(range(5), key=lambda index: -case.jobs[index].flops / strength[index])
        assert list(crux_order(case, paths, 1.0)) == by_intensity


def test_a_row_says_how_errors_are_distributed() -> None:
    found = summarise([Score(0.8, 1.0, 0.5), Score(1.0, 1.0, 1.0), Score(1.0, 1.0, 0.9), Score(0.9, 1.0, 0.8)])
    assert found["performance"] == pytest.approx(1 - 0.3 / 4)
    assert found["max_error"] == pytest.approx(0.2)
    assert found["optimal"] == 0.5
    assert found["decided_cases"] == 3
    assert found["of_range"] == pytest.approx(1 - (0.4 + 0.0 + 0.5) / 3)


def test_without_cases_there_is_nothing_to_summarise() -> None:
    with pytest.raises(ValueError, match="no cases"):
        summarise([])


def test_rows_are_the_same_however_many_processes_work() -> None:
    one, two = (reproduce(Settings(4, seed=2, processes=count), Progress(quiet=True)) for count in (1, 2))
    assert one == two
    assert [row.label for row in one if row.paper] == [f"{name}: {label}" for name in GENERATORS for label in PAPER]


def test_rows_say_what_is_calibrated_and_what_the_first_choice_of_cases_gave() -> None:
    rows = {row.label: row for row in reproduce(Settings(2, seed=2), Progress(quiet=True))}
    first, second = rows["independent: assignment crux"], rows["population: assignment crux"]
    assert (first.calibrated_on, dict(first.a_priori)) == ("", {})
    assert "figure 20" in second.calibrated_on and second.a_priori == first.here
    assert all(row.predicted and not row.fitted for row in rows.values())
