from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from controller.decision import (
    JOB_EVENTS,
    ClusterView,
    Decision,
    JobArrived,
    JobDeparted,
    JobProfiled,
    Measured,
    Scheduler,
    ThroughputMeasured,
)
from controller.schedulers.crux.scheduler import Crux, CruxPa, CruxPsPa
from controller.schedulers.ecmp import Ecmp
from topologies.fabric import Fabric
from workloads.job import Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]


@pytest.fixture
def view(small_fabric: Fabric, make_ring: RingMaker) -> ClusterView:
    """Four jobs on the same links, a the most intense and d the least."""
    jobs = [
        make_ring(name, small_fabric, [0, 2], flops=1e16 / 2**rank, first_port=20000 + 100 * rank)
        for rank, name in enumerate("abcd")
    ]
    return ClusterView(small_fabric, {job.name: job for job in jobs}, level_count=4)


def levels(scheduler: Scheduler, view: ClusterView) -> Mapping[str, int]:
    return scheduler.decide(view, JobArrived("a")).levels


def test_priorities_fall_with_intensity(view: ClusterView) -> None:
    assert levels(Crux(), view) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_a_measured_profile_takes_the_place_of_the_declared_one(view: ClusterView) -> None:
    measured = replace(view, measured={"d": Measured(flops=1e18, communication_s=0.08, iteration_s=1.08)})
    assert levels(Crux(profile="measured"), measured) == {"d": 0, "a": 1, "b": 2, "c": 3}
    assert levels(Crux(), measured) == levels(Crux(), view)


def test_the_notes_say_for_every_job_which_profile_was_used(view: ClusterView) -> None:
    measured = replace(view, measured={"d": Measured(1e18, 0.08, 1.08)})
    notes = Crux(profile="measured").decide(measured, JobProfiled("d")).notes
    assert notes["profile"] == {"a": "declared", "b": "declared", "c": "declared", "d": "measured"}
    intensity = notes["intensity"]
    assert isinstance(intensity, dict) and intensity["d"] == 1e18 / 0.08
    assert set(Crux().decide(measured, JobProfiled("d")).notes["profile"].values()) == {"declared"}  # type: ignore[attr-defined]


def test_a_measurement_equal_to_what_was_declared_changes_nothing(view: ClusterView) -> None:
    plain = Crux().decide(view, JobArrived("a"))
    measured = {
        name: Measured(job.flops, plain.notes["communication_s"][name], 1.08)  # type: ignore[index]
        for name, job in view.jobs.items()
    }
    again = Crux(profile="measured").decide(replace(view, measured=measured), JobProfiled("a"))
    assert (again.paths, again.levels) == (plain.paths, plain.levels)
    assert again.notes["k"] == pytest.approx(plain.notes["k"])


def test_a_job_being_profiled_has_the_highest_level_to_itself(view: ClusterView) -> None:
    found = levels(Crux(arrival="profile"), replace(view, profiling=frozenset({"d"})))
    assert found == {"d": 0, "a": 1, "b": 2, "c": 3}


def test_the_others_share_the_levels_below_it(view: ClusterView) -> None:
    found = levels(Crux(arrival="profile"), replace(view, level_count=3, profiling=frozenset({"d"})))
    assert found["d"] == 0
    assert set(found[name] for name in "abc") == {1, 2}
    assert found["a"] <= found["b"] <= found["c"]


def test_nothing_declared_counts_where_jobs_are_profiled_first(view: ClusterView) -> None:
    crux, measured = Crux(arrival="profile"), {"d": Measured(flops=1e18, communication_s=0.08, iteration_s=1.08)}
    assert levels(crux, replace(view, measured=measured))["d"] == 0
    others = {name: replace(job, flops=job.flops * (1e6 if name == "d" else 1)) for name, job in view.jobs.items()}
    waiting = replace(view, profiling=frozenset({"d"}))
    overstated = crux.decide(replace(waiting, jobs=others), JobArrived("d"))
    as_it_is = Crux(arrival="profile").decide(waiting, JobArrived("d"))
    assert (overstated.paths, overstated.levels) == (as_it_is.paths, as_it_is.levels)
    assert as_it_is.notes["profile"] == {**dict.fromkeys("abc", "declared"), "d": "being measured"}


def test_once_profiled_a_job_counts_by_nothing_declared_but_the_flop_rate_of_a_busy_gpu(view: ClusterView) -> None:
    job = view.jobs["d"]
    longer = tuple(replace(phase, compute_s=3 * phase.compute_s, overlap=0.9) for phase in job.phases)
    overstated = replace(view, jobs={**view.jobs, "d": replace(job, flops=3 * job.flops, phases=longer)})
    measured = {"d": Measured(flops=0.5 * job.flops, communication_s=0.3, iteration_s=1.6)}
    found = [
        Crux(arrival="profile").decide(replace(declared, measured=measured), JobProfiled("d")).notes["k"]
        for declared in (view, overstated)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_the_notes_say_what_measured_work_rests_on(view: ClusterView) -> None:
    measured = replace(view, measured={"d": Measured(1e18, 0.08, 1.08)})
    assert "declared FLOP/s" in str(Crux(profile="measured").decide(measured, JobProfiled("d")).notes["measured_work"])
    assert "measured_work" not in Crux().decide(measured, JobProfiled("d")).notes


def test_with_one_level_all_share_it_even_while_profiling(view: ClusterView) -> None:
    found = levels(Crux(arrival="profile"), replace(view, level_count=1, profiling=frozenset({"d"})))
    assert set(found.values()) == {0}


def test_when_profiling_is_over_all_is_recomputed(view: ClusterView) -> None:
    crux = Crux(arrival="profile", profile="measured")
    crux.decide(replace(view, profiling=frozenset({"d"})), JobArrived("d"))
    done = replace(view, measured={"d": Measured(1e18, 0.08, 1.08)})
    assert crux.decide(done, JobProfiled("d")).levels == {"d": 0, "a": 1, "b": 2, "c": 3}


def test_without_the_procedure_profiling_changes_nothing(view: ClusterView) -> None:
    assert levels(Crux(), replace(view, profiling=frozenset({"d"}))) == levels(Crux(), view)


def test_profiles_are_heard_of_only_where_they_matter() -> None:
    assert Crux().events == JOB_EVENTS
    assert Crux(arrival="profile").events == Crux(profile="measured").events == JOB_EVENTS | {JobProfiled}


def test_a_starving_job_of_low_intensity_rises(view: ClusterView) -> None:
    starving = replace(view, throughput={"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.2})
    assert levels(Crux(fairness=0.5), starving)["d"] == 1
    assert levels(Crux(fairness=1.0), starving)["d"] == 0


def test_with_fairness_alone_jobs_go_by_lost_throughput_and_equal_losses_by_priority(view: ClusterView) -> None:
    reversed_names = replace(view, jobs={name: replace(view.jobs[name]) for name in "dcba"})
    assert levels(Crux(fairness=1.0), reversed_names) == {"a": 0, "b": 1, "c": 2, "d": 3}
    lost = replace(view, throughput={"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.7})
    assert levels(Crux(fairness=1.0), lost) == {"b": 0, "c": 1, "d": 2, "a": 3}


def test_equal_losses_go_by_priority_however_small_that_is(small_fabric: Fabric, make_ring: RingMaker) -> None:
    """Three jobs end no iteration, so that all lost the same; their priorities are below 1e-3 of the largest."""
    iterations = {"a": (1.0, 1e16), "b": (0.5, 5e11), "c": (1.0, 4e12), "d": (2.0, 2e12)}
    jobs = {
        name: make_ring(name, small_fabric, [0, 2], compute_s=each, flops=flops, first_port=20000 + 100 * rank)
        for rank, (name, (each, flops)) in enumerate(iterations.items())
    }
    view = ClusterView(small_fabric, jobs, level_count=4)
    by_priority = [name for name in levels(Crux(), view) if name != "a"]
    starving = replace(view, throughput={"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0})
    assert levels(Crux(fairness=1.0), starving) == dict(zip([*by_priority, "a"], range(4), strict=True))


def test_with_fairness_crux_is_called_again_while_nothing_else_happens() -> None:
    assert (ThroughputMeasured in Crux(fairness=0.5).events, Crux(fairness=0.5).every_s) == (True, 10.0)
    assert (ThroughputMeasured in Crux().events, Crux().every_s) == (False, 0.0)


def test_levels_in_force_stay_after_a_departure_and_an_arrival(view: ClusterView) -> None:
    before = Crux().decide(view, JobArrived("a"))
    rest = replace(view, jobs={name: job for name, job in view.jobs.items() if name != "b"}, decision=before)
    after = Crux().decide(rest, JobDeparted("b"))
    assert after.levels == {"a": 0, "c": 2, "d": 3}
    assert Crux().decide(replace(view, decision=after), JobArrived("b")).levels == before.levels


def test_levels_change_where_the_best_cut_weighs_more_by_the_stated_share(view: ClusterView) -> None:
    shared = Decision(levels={"a": 0, "b": 1, "c": 2, "d": 2})
    in_force = replace(view, decision=shared)  # c and d share: their edge is 1 / 8 of a's, of 4.25 a's in all
    assert levels(Crux(steady=0.1), in_force) == shared.levels
    assert levels(Crux(steady=0.01), in_force) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_without_fairness_throughput_does_not_matter(view: ClusterView) -> None:
    starving = replace(view, throughput={"d": 0.1})
    assert Crux(fairness=0).decide(starving, JobArrived("a")) == Crux().decide(view, JobArrived("a"))


def test_with_no_loss_fairness_changes_no_order(view: ClusterView) -> None:
    assert levels(Crux(fairness=0.5), view) == levels(Crux(), view)


@pytest.mark.parametrize("scheduler", [Crux, CruxPa, CruxPsPa])
def test_a_clamp_bounds_the_factors_of_every_variant(
    scheduler: Callable[..., Crux], small_fabric: Fabric, make_ring: RingMaker
) -> None:
    jobs = [
        make_ring("long", small_fabric, [0, 2], compute_s=2.0, size=5e9),
        make_ring("short", small_fabric, [1, 3], compute_s=0.1, size=2e8, first_port=21000),
    ]
    mixed = ClusterView(small_fabric, {job.name: job for job in jobs}, level_count=4)
    factors = {clamp: scheduler(clamp=clamp).decide(mixed, JobArrived("long")).notes["k"] for clamp in (1, 1.5, 1e6)}
    assert factors[1] == {"long": 1.0, "short": 1.0}
    assert factors[1.5] == {"long": 1.0, "short": 1.5}
    wide = factors[1e6]
    assert isinstance(wide, dict) and wide["short"] > 1.5


def test_crux_pa_keeps_ecmp_paths_and_gives_levels(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    view = ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)})
    decision = CruxPa().decide(view, JobArrived("job0"))
    assert decision.paths == Ecmp().decide(view, JobArrived("job0")).paths
    assert decision.levels == {"job0": 0, "job1": 1}


def test_crux_ps_pa_has_the_paths_of_crux_and_a_level_for_every_job(view: ClusterView) -> None:
    full = Crux().decide(view, JobArrived("a"))
    unlimited = CruxPsPa().decide(view, JobArrived("a"))
    assert (unlimited.paths, unlimited.levels) == (full.paths, full.levels)


def test_on_too_few_levels_crux_ps_pa_lets_the_last_jobs_share(view: ClusterView) -> None:
    assert levels(CruxPsPa(), replace(view, level_count=2)) == {"a": 0, "b": 1, "c": 1, "d": 1}


def test_the_presets_have_names_and_sources_of_their_own() -> None:
    assert [scheduler.name for scheduler in (Crux, CruxPa, CruxPsPa)] == ["crux", "crux-pa", "crux-ps-pa"]
    assert CruxPa.decides == ("levels",) and Crux.decides == CruxPsPa.decides == ("paths", "levels")
    assert all("SIGCOMM 2024" in scheduler.source for scheduler in (Crux, CruxPa, CruxPsPa))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Crux(profile="guessed"), "option 'profile' of crux must be declared or measured, not 'guessed'"),
        (lambda: Crux(arrival="later"), "option 'arrival' of crux must be recompute or profile, not 'later'"),
        (lambda: Crux(enforcement="mpls"), "option 'enforcement' of crux must be rules or ports, not 'mpls'"),
        (lambda: Crux(fairness=1.5), "option 'fairness' of crux must be a number from 0 to 1, not '1.5'"),
        (lambda: Crux(clamp=0.5), "option 'clamp' of crux must be a number of at least 1, not '0.5'"),
        (lambda: Crux(clamp=float("inf")), "option 'clamp' of crux must be a number of at least 1, not 'inf'"),
        (lambda: CruxPsPa(clamp=True), "option 'clamp' of crux-ps-pa must be a number of at least 1, not 'True'"),
        (lambda: Crux(steady=-0.1), "option 'steady' of crux must be a number from 0 to 1, not '-0.1'"),
        (lambda: CruxPa(fairness=True), "option 'fairness' of crux-pa must be a number from 0 to 1, not 'True'"),
    ],
)
def test_a_wrong_option_is_one_clear_line(make: Callable[[], Decision], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == message


def test_semaphores_are_on_the_pcie_links_that_two_jobs_send_over(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring("a", small_fabric, [0, 2]),
        make_ring("b", small_fabric, [2, 3], first_port=21000),
        make_ring("c", small_fabric, [1, 3], first_port=22000),
    ]
    view = ClusterView(small_fabric, {job.name: job for job in jobs})
    for scheduler in (Crux(pcie="semaphore"), CruxPa(pcie="semaphore"), CruxPsPa(pcie="semaphore")):
        assert scheduler.decide(view, JobArrived("c")).exclusive == ("h2s0->h2n0", "h3s0->h3n0")
    assert Crux().decide(view, JobArrived("c")).exclusive == ()


def test_a_word_that_is_no_way_to_share_pcie_is_refused() -> None:
    with pytest.raises(ValueError, match="option 'pcie' of crux must be queue or semaphore, not 'lock'"):
        Crux(pcie="lock")


def test_where_nobody_reads_notes_none_are_written_and_the_rest_of_the_decision_is_the_same(view: ClusterView) -> None:
    with_notes = Crux().decide(view, JobArrived("d"))
    without = Crux().decide(replace(view, keeps_notes=False), JobArrived("d"))
    assert with_notes.notes and not without.notes
    assert without == replace(with_notes, notes={})
