"""Switches count bytes by link and level; the decision in force says whose they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from controller.decision import ByteLevels, Decision
from testbed.experiment.experiment import Experiment
from testbed.report.page.job_loads import JobLoads, iterations_made, job_loads
from testbed.results.record import DecisionRow, IterationRow, LinkRow, RunRecord

LINK, LEVELS = "tor0->agg0", 8
CAPACITY = 200e9


def run(rows: Sequence[LinkRow], decisions: Sequence[DecisionRow], iterations: Sequence[IterationRow]) -> RunRecord:
    return RunRecord("any", "flow", 4.0, {}, tuple(iterations), tuple(rows), tuple(decisions))


def decided(experiment: Experiment, levels: dict[str, int], time_s: float = 0.0, aggregation: int = 0) -> DecisionRow:
    """All flows over one aggregation switch."""
    paths = {
        flow.id: experiment.fabric.candidate_paths(flow.source, flow.target)[aggregation]
        for job in experiment.jobs
        for flow in job.flows
    }
    return DecisionRow(time_s, "a test", Decision(paths, levels))


def made(job: str, gpu: str, length: float, until: float) -> list[IterationRow]:
    return [
        IterationRow(job, gpu, i, i * length, 0.1, 0.1, 0.1, 0.0, (i + 1) * length)
        for i in range(round(until / length))
    ]


def shares(loads: JobLoads | None, experiment: Experiment, link: str = LINK) -> dict[tuple[int, int], list[float]]:
    """(job, level) -> loads on ``link``."""
    assert loads is not None
    names = [each.name for each in experiment.fabric.network_links]
    return {
        (int(job), int(level)): [round(float(value), 6) for value in values]
        for at, job, level, values in zip(loads.link, loads.job, loads.level, loads.loads, strict=True)
        if names[at] == link
    }


def loads_of(record: RunRecord, experiment: Experiment) -> JobLoads | None:
    return job_loads(record, experiment.jobs, [0, 1], experiment.fabric.network_links, LEVELS)


@pytest.fixture
def iterations() -> list[IterationRow]:
    return made("big", "h0g0", 1.0, 4.0) + made("small", "h0g3", 0.5, 4.0)


def test_levels_tell_the_jobs_of_a_link_apart(experiment: Experiment, iterations: list[IterationRow]) -> None:
    rows = [LinkRow(1.0, LINK, 0, 5e9, 0, 0), LinkRow(1.0, LINK, 3, 10e9, 0, 0), LinkRow(2.0, LINK, 3, 20e9, 0, 0)]
    found = loads_of(run(rows, [decided(experiment, {"big": 0, "small": 3})], iterations), experiment)
    assert shares(found, experiment) == {(0, 0): [0.2, 0.0], (1, 3): [0.4, 0.8]}


def test_jobs_that_share_a_level_share_its_bytes_by_what_their_connections_send(
    experiment: Experiment, iterations: list[IterationRow]
) -> None:
    # big has two flows of 2.5 GB up this link and one iteration per second, small one flow and two iterations.
    found = loads_of(run([LinkRow(1.0, LINK, 7, 20e9, 0, 0)], [decided(experiment, {})], iterations), experiment)
    assert shares(found, experiment) == {(0, 7): [0.4], (1, 7): [0.4]}


def test_a_job_that_makes_no_iteration_sends_nothing(experiment: Experiment) -> None:
    only_big = made("big", "h0g0", 1.0, 4.0)
    found = loads_of(run([LinkRow(1.0, LINK, 7, 20e9, 0, 0)], [decided(experiment, {})], only_big), experiment)
    assert shares(found, experiment) == {(0, 7): [0.8]}


def test_a_new_decision_moves_the_load(experiment: Experiment, iterations: list[IterationRow]) -> None:
    rows = [LinkRow(time, LINK, level, 10e9, 0, 0) for time in (1.0, 2.0) for level in (0, 1)]
    decisions = [decided(experiment, {"big": 0, "small": 1}), decided(experiment, {"big": 1, "small": 0}, 1.0)]
    found = shares(loads_of(run(rows, decisions, iterations), experiment), experiment)
    assert found == {(0, 0): [0.4, 0.0], (0, 1): [0.0, 0.4], (1, 0): [0.0, 0.4], (1, 1): [0.4, 0.0]}


def test_levels_that_no_connection_has_are_shared_by_all_on_the_link(
    experiment: Experiment, iterations: list[IterationRow]
) -> None:
    by_bytes = decided(experiment, {})
    levels = {"big": ByteLevels("sent", (1e9,)), "small": ByteLevels("sent", (1e9,))}
    decision = Decision(by_bytes.decision.paths, byte_levels=levels)
    rows = [LinkRow(1.0, LINK, 2, 20e9, 0, 0)]
    found = loads_of(run(rows, [DecisionRow(0.0, "a test", decision)], iterations), experiment)
    assert shares(found, experiment) == {(0, 2): [0.4], (1, 2): [0.4]}


def test_bytes_where_no_connection_goes_belong_to_no_job(
    experiment: Experiment, iterations: list[IterationRow]
) -> None:
    rows = [LinkRow(1.0, "tor0->agg1", 7, 10e9, 0, 0)]
    found = loads_of(run(rows, [decided(experiment, {})], iterations), experiment)
    assert shares(found, experiment, "tor0->agg1") == {(-1, 7): [0.4]}
    assert shares(loads_of(run(rows, [], iterations), experiment), experiment, "tor0->agg1") == {(-1, 7): [0.4]}


def test_no_byte_is_lost(experiment: Experiment, records: tuple[RunRecord, ...]) -> None:
    for record in records:
        found = loads_of(record, experiment)
        assert found is not None
        total = (found.loads * np.diff(found.edges_s)).sum() * CAPACITY / 8
        assert total == pytest.approx(sum(row.bytes for row in record.links))


def test_without_samples_there_are_no_loads(experiment: Experiment, iterations: list[IterationRow]) -> None:
    assert loads_of(run([], [], iterations), experiment) is None


def test_levels_outside_of_the_scenario_do_no_harm(experiment: Experiment, iterations: list[IterationRow]) -> None:
    rows = [LinkRow(1.0, LINK, 10**9, 10e9, 0, 0), LinkRow(2.0, LINK, -5, 10e9, 0, 0)]
    found = loads_of(run(rows, [decided(experiment, {"big": -9, "small": 10**9})], iterations), experiment)
    assert shares(found, experiment) == {(0, 0): [0.0, 0.4], (1, 7): [0.4, 0.0]}


def test_iterations_count_in_parts(experiment: Experiment) -> None:
    rows = made("big", "h0g0", 1.0, 3.0)
    done = iterations_made(rows, experiment.jobs, np.array([0.0, 0.5, 2.5, 9.0]))
    assert done.tolist() == [[0.5, 2.0, 0.5], [0.0, 0.0, 0.0]]
