"""Gandiva: jobs take turns, resume in place or pay, share GPUs only where that gains, and keep only moves that help."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Migrate, Pack, Preempt, Resize, Start
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import Ended, QueuedJob, Submitted, Tick
from workloads.managers.jobs import Running, Waiting
from workloads.managers.registry import create, manager

FABRIC = clos(hosts=2, gpus_per_host=4, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
ONE_HOST = clos(hosts=1, gpus_per_host=2, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)
GANDIVA = manager("affinity", policy="gandiva")
COMPUTES, SENDS = (1.0, 0.1), (0.1, 1.0)


def job(name: str, gpus: int, duration_s: float = 1000.0, stages: tuple[float, float] = (0, 0), **more: int) -> Waiting:
    return Waiting(name, gpus, 0.0, duration_s, duration_s, duration_s, stages[0], stages[1], **more)  # type: ignore[arg-type]


def suspended(state: ClusterState, name: str) -> tuple[ClusterState, Waiting]:
    asked = state.running[name].until(state.time_s)
    return state.end(name), asked


def test_a_suspended_job_resumes_where_it_was() -> None:
    state, waits = suspended(EMPTY.start(job("a", 2), ("h1g2", "h1g3")).at(60.0), "a")
    (start,) = GANDIVA.decide(state.at(100.0), [waits], Tick())
    assert isinstance(start, Start) and (start.gpus, start.pause_s) == (("h1g2", "h1g3"), 0.1)


def test_on_other_gpus_it_pays_a_migration() -> None:
    state, waits = suspended(EMPTY.start(job("a", 2), ("h1g2", "h1g3")).at(60.0), "a")
    state = state.start(job("b", 1), ("h1g3",))
    (start,) = GANDIVA.decide(state.at(100.0), [waits], Tick())
    assert isinstance(start, Start) and start.pause_s == pytest.approx(0.1 + 1.5)
    assert "h1g3" not in start.gpus


def test_a_job_that_starts_for_the_first_time_pays_nothing() -> None:
    (start,) = GANDIVA.decide(EMPTY, [job("a", 2)], Submitted("a"))
    assert isinstance(start, Start) and start.pause_s == 0.0


def test_servers_with_jobs_of_the_same_size_come_first_then_empty_ones() -> None:
    placer = create("placer", "affinity")
    state = EMPTY.start(job("small", 1), ("h0g0",)).start(job("pair", 2), ("h1g0", "h1g1"))
    assert placer.place(state, job("b", 1), 1).gpus == ("h0g1",)  # type: ignore[attr-defined]
    assert placer.place(state, job("b", 2), 2).gpus == ("h1g2", "h1g3")  # type: ignore[attr-defined]
    assert placer.place(EMPTY.start(job("small", 1), ("h0g0",)), job("b", 2), 2).gpus == (  # type: ignore[attr-defined]
        "h1g0",
        "h1g1",
    )
    assert placer.place(state, job("b", 3), 3).gpus == ("h0g1", "h0g2", "h0g3")  # type: ignore[attr-defined]


def test_jobs_take_turns_on_their_gpus_with_equal_shares() -> None:
    jobs = [replace(job(f"j{number}", 2, 300.0), number=number) for number in range(3)]
    made = Play(manager("affinity", policy="gandiva", options={"policy": {"suspend_s": 0.0}}), ONE_HOST, jobs).run()
    # Three jobs on the same GPUs, always in place: slices of 60 s in turn.
    assert sorted(each.end_s or 0.0 for each in made) == pytest.approx([780.0, 840.0, 900.0])


def test_a_job_without_room_joins_one_that_it_complements() -> None:
    state = empty_cluster(ONE_HOST).start(job("computes", 2, stages=COMPUTES), ONE_HOST.gpus)
    (pack,) = GANDIVA.decide(state.at(10.0), [job("sends", 2, stages=SENDS)], Submitted("sends"))
    assert isinstance(pack, Pack) and (pack.jobs, pack.gpus) == (("computes", "sends"), ONE_HOST.gpus)


def test_a_pair_that_gains_stays_together_and_one_that_does_not_is_separated() -> None:
    jobs = [replace(job(f"j{n}", 2, 300.0, stages), number=n) for n, stages in enumerate((COMPUTES, SENDS))]
    made = Play(manager("affinity", policy="gandiva"), ONE_HOST, jobs).run()
    # One computes while the other sends: both as fast as alone.
    assert [each.end_s for each in made] == pytest.approx([300.0, 300.0])
    state = empty_cluster(ONE_HOST).start(jobs[0], ONE_HOST.gpus)
    state = state.after(Pack(tuple(jobs), ONE_HOST.gpus, 0.0, "for the test")).measured({"j0": 0.4, "j1": 0.5}).at(60.0)
    (apart,) = GANDIVA.decide(state, [], Tick())
    assert isinstance(apart, Preempt) and (apart.job, apart.apart_from) == ("j1", ("j0",))


def test_a_pack_takes_its_turn_as_one() -> None:
    pair = (job("computes", 2, stages=COMPUTES), job("sends", 2, stages=SENDS, number=1))
    state = empty_cluster(ONE_HOST).after(Pack(pair, ONE_HOST.gpus, 0.0, "for the test"))
    actions = GANDIVA.decide(state.at(60.0), [job("third", 2, number=2)], Tick())
    assert [(type(each), each.job) for each in actions if isinstance(each, Preempt | Start)] == [
        (Preempt, "computes"),
        (Preempt, "sends"),
        (Start, "third"),
    ]


def test_idle_gpus_go_to_an_elastic_job_and_come_back_before_anybody_takes_turns() -> None:
    elastic = job("elastic", 2, max_gpus=4)
    state = EMPTY.start(elastic, ("h0g0", "h0g1"))
    (grown,) = GANDIVA.decide(state.at(10.0), [], Tick())
    assert isinstance(grown, Resize) and grown.gpus == ("h0g0", "h0g1", "h0g2", "h0g3")
    state = state.at(10.0).after(grown)
    back, start = GANDIVA.decide(state.at(20.0), [job("wide", 6, number=1)], Submitted("wide"))
    assert isinstance(back, Resize) and back.gpus == ("h0g0", "h0g1")
    assert isinstance(start, Start) and len(start.gpus) == 6


def moved(speed: float) -> ClusterState:
    """A job that ran at 0.8 on two hosts, moved to one, and ran there at ``speed`` for a trial."""
    state = EMPTY.start(job("a", 2), ("h0g0", "h1g0")).measured({"a": 0.8}).at(60.0)
    (there,) = GANDIVA.decide(state, [], Ended("b"))
    assert isinstance(there, Migrate) and len({gpu[:2] for gpu in there.gpus}) == 1
    assert there.pause_s == 1.5
    return state.after(there).measured({"a": speed}).at(60.0 + 61.5)


def test_a_move_is_kept_if_measured_progress_improves_and_undone_if_not() -> None:
    assert GANDIVA.decide(moved(1.0), [], Tick()) == ()
    (back,) = GANDIVA.decide(moved(0.6), [], Tick())
    assert isinstance(back, Migrate) and back.gpus == ("h0g0", "h1g0")


def test_after_a_move_a_job_stays_for_ten_trials() -> None:
    state = moved(0.6)
    (back,) = GANDIVA.decide(state, [], Tick())
    state = state.after(back).measured({"a": 0.8})
    assert GANDIVA.decide(state.at(state.time_s + 599.0), [], Ended("b")) == ()
    assert len(GANDIVA.decide(state.at(state.time_s + 600.0), [], Ended("b"))) == 1


def test_a_job_slowed_by_others_moves_to_other_hosts() -> None:
    state = EMPTY.start(job("a", 2), ("h0g0", "h0g1")).measured({"a": 0.7}).at(60.0)
    (away,) = GANDIVA.decide(state, [], Ended("b"))
    assert isinstance(away, Migrate) and {gpu[:2] for gpu in away.gpus} == {"h1"}
    assert GANDIVA.decide(state.measured({"a": 0.97}), [], Ended("b")) == ()
    stays = manager("affinity", policy="gandiva", options={"policy": {"migrate": False}})
    assert stays.decide(state, [], Ended("b")) == ()


@st.composite
def crowds(draw: st.DrawFn) -> list[Waiting]:
    return [
        replace(
            job(f"j{number}", draw(st.integers(1, 8)), float(draw(st.integers(1, 300))), (1.0, draw(st.floats(0, 2)))),
            submit_s=float(draw(st.integers(0, 400))),
            max_gpus=draw(st.none() | st.just(8)),
        )
        for number in range(draw(st.integers(1, 10)))
    ]


@given(jobs=crowds())
@settings(max_examples=40, deadline=None)
def test_every_job_ends_and_no_inelastic_one_is_faster_than_alone(jobs: list[Waiting]) -> None:
    made = {each.name: each for each in Play(GANDIVA, FABRIC, jobs).run()}
    for each in jobs:
        jct_s = made[each.name].jct_s
        assert jct_s is not None
        assert each.max_gpus is not None or jct_s >= (each.duration_s or 0.0) * (1 - 1e-9)
    work = sum(each.gpus * (each.duration_s or 0.0) for each in jobs)
    span = max(each.end_s or 0.0 for each in made.values()) - min(each.submit_s for each in jobs)
    assert span >= work / (2 * len(FABRIC.gpus)) * (1 - 1e-9)  # two jobs on a GPU, each as fast as alone


@given(count=st.integers(2, 7), gpus=st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_no_job_has_had_more_than_two_slices_more_than_another(count: int, gpus: int) -> None:
    """Jobs of equal size that are always there, over 30 slices."""
    policy = manager("affinity", policy="gandiva")
    state, waiting = empty_cluster(ONE_HOST), [job(f"j{number}", gpus, number=number) for number in range(count)]
    for turn in range(30):
        state = state.at(60.0 * turn)
        for action in policy.decide(state, waiting, Tick()):
            if isinstance(action, Preempt):
                waiting.append(state.running[action.job].until(state.time_s))
            elif isinstance(action, Start):
                waiting = [each for each in waiting if each.name != action.job]
            state = state.after(action)
    had = [each.ran_s for each in waiting]
    had += [each.job.ran_s + state.time_s - each.since_s for each in state.running.values()]
    assert max(had) - min(had) <= 120.0


@pytest.mark.parametrize("policy", ["gandiva", "time-slices"])
@pytest.mark.parametrize("time_s", [30.0, 60.0])
def test_a_decision_compares_no_two_jobs(policy: str, time_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a slice and at its end: comparing each job with each other takes time in the square of them."""
    state = EMPTY
    for number, gpu in enumerate(FABRIC.gpus):
        state = state.start(job(f"r{number}", 1, number=number), (gpu,))
    queued = [QueuedJob(job(f"w{number}", 1, number=8 + number)) for number in range(8)]

    def compared(one: object, other: object) -> bool:
        raise AssertionError("two jobs are compared")

    with monkeypatch.context() as patched:
        patched.setattr(Running, "__eq__", compared)
        patched.setattr(Waiting, "__eq__", compared)
        actions = list(create("policy", policy).decide(state.at(time_s), queued, Tick()))  # type: ignore[attr-defined]
    assert bool(actions) == (time_s == 60.0)  # nothing is known of these jobs' stages: none is packed


def test_an_option_of_gandiva_that_is_no_number_is_one_line() -> None:
    with pytest.raises(ValueError, match="option 'slice_s' of gandiva must be a number above 0, not 'long'"):
        manager(policy="gandiva", options={"policy": {"slice_s": "long"}})
