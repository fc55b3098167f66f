from __future__ import annotations

import json

import pytest

from testbed.metrics.catalogue import change
from testbed.metrics.measured import analytic_times
from testbed.metrics.summary import summary


@pytest.fixture(scope="module")
def document(experiment, records):
    return summary(experiment, records)


def test_the_summary_has_the_agreed_keys_in_order(document):
    agreed = ["schema_version", "scenario", "engine", "seed", "scale", "rehearsal", "runs", "comparison"]
    assert list(document) == [*agreed, "nothing_to_schedule", "failures_not_reached", "left_out_of_files"]
    assert document["schema_version"] == 2
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_first_run_is_the_baseline(document):
    ecmp, crux = document["runs"]
    found = document["comparison"]
    assert list(found) == ["baseline", "crux"]
    assert found["baseline"] == "ecmp"
    points = 100 * (crux["gpu_utilization"] - ecmp["gpu_utilization"])
    assert found["crux"]["gpu_utilization_points"] == pytest.approx(points)
    assert found["crux"]["jct_change"]["big"] == pytest.approx(1.0 / 1.2 - 1)


def test_a_change_needs_both_numbers():
    assert change(10.0, 9.0) == pytest.approx(-0.1)
    assert change(None, 9.0) is None
    assert change(10.0, None) is None


def test_the_formula_knows_the_flows_of_one_job_on_one_path(experiment, records):
    big = experiment.jobs[0]
    together, apart = (analytic_times(big, record, experiment) for record in records)
    assert (together.ideal_s, together.decided_s) == (pytest.approx(1.0), pytest.approx(1.1))
    assert apart.decided_s == pytest.approx(1.0)


def test_what_is_lost_less_is_the_gain(document):
    big = document["comparison"]["crux"]["gain_split"]["jobs"]["big"]
    ecmp, crux = (run["jobs"][0]["gpu_utilization"] for run in document["runs"])
    assert big["own_points"] > 0 and big["others_points"] > 0
    assert sum(big.values()) == pytest.approx(100 * (crux - ecmp))


def test_the_split_of_the_run_weighs_jobs_by_their_gpu_time(document):
    run = document["runs"][0]
    total = sum(job["loss"]["own_points"] * job["allocated_gpu_s"] for job in run["jobs"])
    assert run["loss"]["own_points"] == pytest.approx(total / run["allocated_gpu_s"])
