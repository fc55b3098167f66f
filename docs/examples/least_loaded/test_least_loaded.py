"""Tests of the scheduler: its decisions by themselves, and a run in the flow engine. No root, a few seconds."""

from collections import Counter
from pathlib import Path

import pytest
from least_loaded import LeastLoaded

import testbed
from testbed.api import prepare
from testbed.plugins import ClusterView, Decision, JobArrived, LinkDown

SCENARIO = Path(__file__).with_name("pairs.yaml")


@pytest.fixture
def view() -> ClusterView:
    """The cluster of the scenario when both jobs have arrived."""
    experiment = prepare(SCENARIO, engine="flow").experiments[0]
    return ClusterView(experiment.fabric, {job.name: job for job in experiment.jobs})


def flows_by_link(view: ClusterView, decision: Decision) -> Counter[str]:
    return Counter(link for path in decision.paths.values() for link in path)


def test_no_two_flows_share_a_link(view: ClusterView) -> None:
    decision = LeastLoaded().decide(view, JobArrived("two"))
    assert decision.paths.keys() == {flow.id for flow in view.flows}
    assert set(flows_by_link(view, decision).values()) == {1}


def test_only_flows_on_a_failed_link_move_if_the_others_keep_their_paths(view: ClusterView) -> None:
    before = LeastLoaded().decide(view, JobArrived("two"))
    failed = next(iter(before.paths.values()))[1]
    now = ClusterView(view.fabric.without([failed]), view.jobs, decision=before)
    after = LeastLoaded(keep=True).decide(now, LinkDown(failed))
    moved = {flow for flow in before.paths if after.paths[flow] != before.paths[flow]}
    gone = {failed, view.fabric.links[failed].reverse}
    assert moved == {flow for flow, path in before.paths.items() if not gone.isdisjoint(path)}
    assert gone.isdisjoint(flows_by_link(now, after))


def test_an_option_that_is_no_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="option 'keep' of least-loaded must be true or false, not 'yes'"):
        LeastLoaded(keep="yes")  # type: ignore[arg-type]


def test_no_gpu_waits_for_a_shared_link(tmp_path: Path) -> None:
    result = testbed.run(SCENARIO, engine="flow", out=tmp_path)
    used = {run["scheduler"]: run["gpu_utilization"] for run in result.summary["runs"]}
    assert used["least-loaded"] == pytest.approx(1.0)
    assert used["ecmp"] < 0.9
