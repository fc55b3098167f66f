"""MLTCP: the share of a link grows with what a flow has sent of its iteration."""

from __future__ import annotations

import pytest

from controller.decision import ClusterView, JobArrived
from controller.schedulers.mltcp import Mltcp, aggressiveness, next_shift
from topologies.clos import clos
from workloads.build import JobSpec, build_jobs

FABRIC = clos(hosts=4, tors=2, aggregations=2, gpus_per_host=2, nics_per_host=1, port_rate=100e9, fabric_rate=100e9)
JOBS = build_jobs([JobSpec("a", "bert", 4), JobSpec("b", "bert", 4)], FABRIC, "spread")


def test_weights_are_the_line_of_the_paper_in_the_middle_of_each_part() -> None:
    assert aggressiveness(2.0, 0.5, parts=2).parts == (1.0, 2.0)


def test_every_job_that_sends_has_them_and_hashed_paths() -> None:
    view = ClusterView(FABRIC, {job.name: job for job in JOBS})
    decision = Mltcp().decide(view, JobArrived("b"))
    assert decision.weights == {"a": aggressiveness(1.75, 0.25), "b": aggressiveness(1.75, 0.25)}
    assert set(decision.paths) == {flow.id for flow in view.flows}
    assert not decision.levels


def test_two_equal_jobs_drift_apart_until_their_bursts_do_not_overlap() -> None:
    shift, drift = 0.01, []
    for _ in range(30):
        drift.append(shift)
        shift = next_shift(shift, 1.0, 1.75, 0.25)
    assert drift == sorted(drift)
    assert 1.0 - shift < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slope": -1}, "option 'slope' of mltcp must be a number of at least 0, not '-1'"),
        ({"intercept": 0}, "option 'intercept' of mltcp must be a number above 0, not '0'"),
        ({"intercept": True}, "option 'intercept' of mltcp must be a number above 0, not 'True'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        Mltcp(**options)
    assert str(refused.value) == message
