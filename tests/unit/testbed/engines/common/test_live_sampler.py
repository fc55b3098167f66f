"""Samples of a run while it goes on, made here from a run of the flow engine that is looked at every second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.api import prepare
from testbed.engines.common.iterations import iteration_rows, windows
from testbed.engines.common.live_sampler import LiveSampler
from testbed.engines.flow.cluster import FlowCluster
from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import job_metrics
from testbed.results.record import RunRecord
from testbed.watch.messages import LiveSample

EXPERIMENT = replace(prepare("hello", engine="flow", schedulers=["crux"]).experiments[0])
LINKS = EXPERIMENT.fabric.network_links


class Watched:
    """A run of the flow engine, looked at whenever another second is over; ``samples`` are in order of time."""

    def __init__(self, experiment: Experiment, until_s: float) -> None:
        self.experiment = experiment
        self.cluster = FlowCluster(experiment)
        self.sampler = LiveSampler(experiment, self.cluster.jobs)
        self.samples = list(self._looks(until_s))

    def _looks(self, until_s: float) -> Iterator[LiveSample]:
        while self.cluster.now == 0.0:  # until the first jobs are there
            self.cluster.step()
        yield self.sampler.take(self.cluster.now, 0.0, (), self.cluster.decisions)
        due = 1.0
        while self.cluster.now < until_s:
            self.cluster.step()
            if self.cluster.now >= due:
                due += 1.0
                self.cluster.flush_links()
                yield self.look()

    def look(self) -> LiveSample:
        cluster = self.cluster
        return self.sampler.take(cluster.now, cluster.now, cluster.links, cluster.decisions)

    def record(self) -> RunRecord:
        rows = iteration_rows(self.cluster.jobs.reports, self.experiment, 0.0, [])
        spans = windows(rows, self.experiment)
        return RunRecord(
            self.experiment.scheduler, "flow", self.cluster.now, spans, rows, tuple(self.cluster.links), ()
        )


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched(EXPERIMENT, 6.0)


def test_loads_times_rates_are_the_bytes_that_the_links_sent(watched: Watched) -> None:
    sent: dict[str, float] = defaultdict(float)
    read_s = 0.0  # the first sample has no counters yet
    for now in watched.samples[1:]:
        for load in now.link_loads():
            link = LINKS[load.link]
            sent[link.name] += load.share * link.capacity / 8 * (now.time_s - read_s)
        read_s = now.time_s
    counted: dict[str, float] = defaultdict(float)
    for row in watched.cluster.links:
        counted[row.link] += row.bytes
    assert {name for name, size in counted.items() if size > 1e6} == set(sent)
    for name, size in sent.items():
        assert size == pytest.approx(counted[name], rel=0.01)


def test_utilisation_so_far_is_what_the_summary_would_say(watched: Watched) -> None:
    record = watched.record()
    for job, state in zip(EXPERIMENT.jobs, watched.samples[-1].jobs, strict=True):
        assert state.utilization == pytest.approx(job_metrics(record, job).utilization, abs=0.01)


def test_nothing_is_said_about_utilisation_during_warm_up(watched: Watched) -> None:
    assert watched.samples[0].utilization is None
    assert {job.utilization for job in watched.samples[0].jobs} == {None}


def test_iterations_only_grow_and_are_those_that_were_made(watched: Watched) -> None:
    made = [[job.iterations for job in sample.jobs] for sample in watched.samples]
    assert made == sorted(made) and made[-1] == [live.completed for live in watched.cluster.jobs.values()]
    assert min(made[-1]) > 4


def test_routes_are_told_with_the_first_sample_and_then_only_when_they_change(watched: Watched) -> None:
    first = watched.samples[0].routes
    assert first is not None and [sample.routes for sample in watched.samples[1:]] == [None] * (
        len(watched.samples) - 1
    )
    paths = watched.cluster.decisions[-1].decision.paths
    for job in EXPERIMENT.jobs:
        assert {LINKS[place].name for place in first[job.name]} == {
            link for flow in job.flows for link in paths[flow.id]
        }


def test_only_links_on_a_route_carry_load(watched: Watched) -> None:
    routes = watched.samples[0].routes
    assert routes is not None
    on_routes = {link for route in routes.values() for link in route}
    assert {load.link for sample in watched.samples for load in sample.link_loads()} == on_routes


def test_loads_stay_until_counters_are_read_again(watched: Watched) -> None:
    cluster = watched.cluster
    read_s = watched.samples[-1].time_s
    later = watched.sampler.take(read_s + 0.5, read_s, cluster.links, cluster.decisions)
    assert later.loads == watched.samples[-1].loads and later.time_s == read_s + 0.5


def test_jobs_that_come_later_wait_and_change_the_routes_when_they_come() -> None:
    late = replace(EXPERIMENT.jobs[1], start_s=2.0)
    watched = Watched(replace(EXPERIMENT, jobs=(EXPERIMENT.jobs[0], late)), 3.5)
    states = [sample.jobs[1].state for sample in watched.samples]
    assert states[0] == "waiting" and states[-1] == "running"
    told = [sample.routes.keys() for sample in watched.samples if sample.routes is not None]
    assert [list(names) for names in told] == [["big"], ["big", "small"]]


def test_of_managed_jobs_only_those_that_run_are_told() -> None:
    experiment = prepare("arrivals", engine="flow").experiments[0]
    watched = Watched(experiment, 12.0)
    present = [live.job.name for live in watched.cluster.jobs.present()]
    assert [job.name for job in watched.look().jobs] == present != []
