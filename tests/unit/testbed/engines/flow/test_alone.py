"""Why GPUs are idle: what a job loses alone, to its own connections and to other jobs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.engines.flow.alone import with_alone
from testbed.engines.flow.engine import FlowEngine
from testbed.metrics.losses import PARTS
from testbed.metrics.summary import summary
from testbed.results.record import RunRecord

FABRIC = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 4,
    "nics_per_host": 2,
    "tors": 2,
    "aggregations": 2,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
PLACES = (["h0:0-1", "h2:0-1"], ["h0:2-3", "h2:2-3"], ["h1:0-1", "h3:0-1"], ["h1:2-3", "h3:2-3"])
MANAGERS = ("fifo", "gandiva-slicing", "gandiva-packing", "muri-s", "srtf", "philly")
Scenario = dict[str, Any]
Run = dict[str, Any]


def scenario(jobs: list[dict[str, Any]], scheduler: str = "ecmp", **more: Any) -> Scenario:
    measure = {"iterations": 3, "warmup": 1, "time_limit": "500s"}
    return {"fabric": FABRIC, "jobs": jobs, "schedulers": [scheduler], "measure": measure, "channels": 1, **more}


def run(document: Scenario) -> Run:
    """The entry of its only scheduler, as the flow engine finds it."""
    return entry_and_record(document)[0]


def entry_and_record(document: Scenario) -> tuple[Run, RunRecord]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        path.write_text(yaml.safe_dump(document), "utf-8")
        (experiment,) = prepare(path, engine="flow").experiments
        record = with_alone(FlowEngine().run(experiment, Path(folder), lambda _message: None), experiment)
        return summary(experiment, [record])["runs"][0], record


@st.composite
def a_job(draw: st.DrawFn, place: int, *, jitter: bool = True) -> dict[str, Any]:
    job: dict[str, Any] = {
        "name": f"job-{place}",
        "model": "bert",
        "placement": PLACES[place],
        "compute": f"{draw(st.integers(1, 20)) / 20}s",
        "communication": f"{draw(st.integers(1, 60)) / 10}GB",
        "overlap": draw(st.sampled_from([0, 0.25, 1])),
        "collective": draw(st.sampled_from(["ring", "alltoall"])),
        "channels": draw(st.sampled_from([1, 2, 4])),
    }
    if jitter:
        job["jitter"] = draw(st.sampled_from([0, 0.1]))
    if draw(st.booleans()):
        host = str(PLACES[place][1]).split(":")[0]
        first = str(PLACES[place][1]).partition(":")[2][:1] or "0"
        job["stragglers"] = [{"gpu": f"{host}g{first}", "factor": 1.5}]
    return job


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    places = draw(st.lists(st.sampled_from(range(len(PLACES))), min_size=1, max_size=3, unique=True))
    jobs = [draw(a_job(place)) for place in sorted(places)]
    scheduler = draw(st.sampled_from(["ecmp", "crux", "sincronia", "cassini", "taccl-star", "hedera", "varys", "pias"]))
    more: dict[str, Any] = {"seed": draw(st.integers(1, 99))}
    if draw(st.booleans()):
        more["failures"] = [{"link": "tor0->agg0", "at": "1.5s", "until": "4s"}]
    return scenario(jobs, scheduler, **more)


def managed(document: Scenario, manager: str, gpus: int) -> Scenario:
    """The same jobs, on GPUs that a manager finds for them; they are long enough to be stopped."""
    jobs = [
        {key: job[key] for key in job if key not in ("placement", "stragglers")}
        | {"gpus": gpus, "iterations": 12, "start": f"{place}s"}
        for place, job in enumerate(document["jobs"])
    ]
    return {**document, "jobs": jobs, "manager": manager}


def check_that_parts_add_up(found: Run) -> None:
    for entry in (found, *found["jobs"]):
        loss, idle_s = entry["loss"], sum(entry["gpu_idle_s"].values())
        assert sum(loss[f"{part}_gpu_s"] for part in PARTS) == pytest.approx(idle_s, rel=1e-6, abs=1e-6)
        idle_points = 100 * (1 - entry["gpu_utilization"])
        assert sum(loss[f"{part}_points"] for part in PARTS) == pytest.approx(idle_points, abs=1e-6)


@given(scenarios())
@settings(max_examples=200, deadline=None)
def test_the_parts_add_up_and_one_job_loses_nothing_to_others(document: Scenario) -> None:
    found = run(document)
    check_that_parts_add_up(found)
    if len(document["jobs"]) == 1:
        for entry in (found, *found["jobs"]):
            assert (entry["loss"]["others_gpu_s"], entry["loss"]["others_points"]) == (0.0, 0.0)


@given(scenarios(), st.sampled_from(MANAGERS), st.sampled_from([4, 8, 16]))
@settings(max_examples=100, deadline=None)
def test_the_parts_add_up_under_a_manager_and_one_job_loses_nothing_to_others(
    document: Scenario, manager: str, gpus: int
) -> None:
    found = run(managed(document, manager, gpus))
    check_that_parts_add_up(found)
    if len(document["jobs"]) == 1:
        for entry in (found, *found["jobs"]):
            assert (entry["loss"]["others_gpu_s"], entry["loss"]["others_points"]) == (0.0, 0.0)


@given(scenarios())
@settings(max_examples=100, deadline=None)
def test_what_a_job_loses_alone_does_not_depend_on_the_others(document: Scenario) -> None:
    _, together = entry_and_record(document)
    rows = {(row.job, row.iteration): row.without_collisions_gpu_s for row in together.alone}
    for job in document["jobs"]:
        _, by_itself = entry_and_record({**document, "jobs": [job]})
        found = [row for row in by_itself.alone if (row.job, row.iteration) in rows]
        assert len(found) > 1
        for row in found:
            assert row.without_collisions_gpu_s == pytest.approx(rows[row.job, row.iteration], rel=1e-6, abs=1e-6)


@given(a_job(0, jitter=False), st.sampled_from(["ecmp", "taccl-star", "pias"]))
@settings(max_examples=100, deadline=None)
def test_jobs_that_are_alike_lose_alike(job: dict[str, Any], scheduler: str) -> None:
    job.pop("stragglers", None)
    pair = [{**job, "name": name, "placement": place} for name, place in (("a", PLACES[0]), ("b", PLACES[1]))]
    one_way = {**FABRIC, "aggregations": 1}
    first, second = run({**scenario(pair, scheduler), "fabric": one_way, "levels": 1})["jobs"]
    for part in PARTS:
        assert first["loss"][f"{part}_points"] == pytest.approx(second["loss"][f"{part}_points"], abs=0.01)


def test_a_straggler_of_its_own_is_no_loss_to_others() -> None:
    job = {"name": "only", "model": "crux-bert", "placement": ["h0", "h2"]}
    slow, plain = (
        run(scenario([job | more], "crux"))["loss"] for more in ({"stragglers": [{"gpu": "h0g0", "factor": 1.5}]}, {})
    )
    assert slow["others_points"] == plain["others_points"] == 0.0
    assert slow["alone_points"] > plain["alone_points"] + 5


def test_jobs_that_share_no_link_lose_nothing_to_each_other_and_those_that_do_lose() -> None:
    jobs = [
        {"name": name, "model": "bert", "placement": place, "compute": "1s", "communication": "20GB", "overlap": 0}
        for name, place in (("a", PLACES[0]), ("b", PLACES[2]))
    ]
    apart = run(scenario(jobs, "crux"))
    both_ways = run({**scenario(jobs, "crux"), "fabric": {**FABRIC, "aggregations": 1}})
    assert [job["loss"]["others_points"] for job in apart["jobs"]] == [0.0, 0.0]
    assert all(job["loss"]["others_points"] > 1 for job in both_ways["jobs"][1:])
    assert both_ways["jobs"][0]["loss"]["alone_points"] == pytest.approx(apart["jobs"][0]["loss"]["alone_points"])
