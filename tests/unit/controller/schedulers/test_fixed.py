from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.decision import ClusterView, JobArrived
from controller.schedulers import registry
from controller.schedulers.crux.scheduler import Crux
from controller.schedulers.ecmp import Ecmp
from controller.schedulers.fixed import Fixed
from topologies.fabric import Fabric
from workloads.job import Job

MakeMix = Callable[[Fabric], list[Job]]
ARRIVAL = JobArrived("job0")


@pytest.fixture
def view(clos96_fabric: Fabric, make_mix: MakeMix) -> ClusterView:
    return ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)})


def test_the_levels_are_those_of_the_option(view: ClusterView) -> None:
    decision = Fixed(levels={"job0": 3, "job1": 1}).decide(view, ARRIVAL)
    assert {decision.level_of(flow, 7) for flow in view.jobs["job0"].flows} == {3}
    assert {decision.level_of(flow, 7) for flow in view.jobs["job1"].flows} == {1}


def test_what_is_not_named_is_at_the_lowest_level(view: ClusterView) -> None:
    decision = Fixed(levels={"job0": 0}).decide(view, ARRIVAL)
    assert {decision.level_of(flow, 7) for flow in view.jobs["job1"].flows} == {7}


def test_a_flow_may_have_a_level_apart_from_its_jobs(view: ClusterView) -> None:
    first, second = view.jobs["job0"].flows[:2]
    decision = Fixed(levels={"job0": 2, first.id: 0}).decide(view, ARRIVAL)
    assert (decision.level_of(first, 7), decision.level_of(second, 7)) == (0, 2)


def test_a_level_waits_for_its_job_to_arrive(view: ClusterView) -> None:
    assert Fixed(levels={"later": 0}).decide(view, ARRIVAL).levels == {}


def test_rates_are_per_flow_and_shifts_per_job(view: ClusterView) -> None:
    first, second = view.jobs["job0"].flows[:2]
    decision = Fixed(
        rates={"job0": "50Gbps", first.id: "10Gbps"}, shifts={"job1": "0.2s", "later": "1s"}, periods={"job1": "1.5s"}
    ).decide(view, ARRIVAL)
    assert (decision.rates[first.id], decision.rates[second.id]) == (10e9, 50e9)
    assert all(flow.id not in decision.rates for flow in view.jobs["job1"].flows)
    assert (decision.shifts, decision.periods) == ({"job1": 0.2}, {"job1": 1.5})


def test_paths_are_those_of_ecmp_or_those_of_crux(view: ClusterView) -> None:
    hashed, chosen = Ecmp().decide(view, ARRIVAL).paths, Crux().decide(view, ARRIVAL).paths
    assert hashed != chosen
    assert Fixed().decide(view, ARRIVAL).paths == hashed
    assert Fixed(paths="least-loaded").decide(view, ARRIVAL).paths == chosen


def test_a_level_that_does_not_exist_is_named(view: ClusterView) -> None:
    with pytest.raises(ValueError, match="level 8 of 'job0' does not exist, expected 0 to 7"):
        Fixed(levels={"job0": 8}).decide(view, ARRIVAL)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"levels": {"a": -1}}, "level of 'a' .* must be a whole number from 0, not '-1'"),
        ({"levels": {"a": True}}, "level of 'a' .* must be a whole number from 0, not 'True'"),
        ({"levels": {"a": "high"}}, "level of 'a' .* must be a whole number from 0, not 'high'"),
        ({"levels": "0"}, "'levels' of fixed must map job names or flow ids to levels, not '0'"),
        ({"rates": "50Gbps"}, "'rates' of fixed must map job names or flow ids to rates, not '50Gbps'"),
        ({"rates": {"a": "50"}}, "'a' in option 'rates' of fixed: '50' is not a quantity like 200Gbps"),
        ({"shifts": {"a": 3}}, "'a' in option 'shifts' of fixed: '3' is not a quantity like 1.2s"),
        ({"paths": "best"}, "'paths' of fixed must be one of ecmp, least-loaded, not 'best'"),
        ({"level": {}}, "unknown option 'level' of scheduler fixed, did you mean 'levels'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as raised:
        registry.create("fixed", options)
    assert "\n" not in str(raised.value)
