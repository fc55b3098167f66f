"""Names do not matter: with the same seed a run has the same numbers whatever its jobs and hosts are called."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.engines.flow.alone import with_alone
from testbed.engines.flow.engine import FlowEngine
from testbed.metrics.summary import summary

Scenario = dict[str, Any]
SCHEDULERS = (
    "ecmp",
    "crux",
    "crux-pa",
    "sincronia",
    "varys",
    "cassini",
    "taccl-star",
    "hedera",
    "pias",
    "pfabric",
    "sglb",
)
MANAGERS = ("fifo", "tiresias", "muri-s", "gandiva", "srtf", "monkeytree")
TORS, ABOVE = ("t1", "t0"), ("a2", "a0", "a1")
NAMES = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), min_size=4, max_size=4, unique=True)


def fabric_file(hosts: list[str]) -> dict[str, Any]:
    """Two ToRs of two hosts, three cables up each, as node-link JSON."""
    nodes: list[dict[str, Any]] = [{"id": host, "kind": "host", "gpus": 4} for host in hosts]
    nodes += [{"id": name, "kind": "switch"} for name in (*TORS, *ABOVE)]
    cables = [(host, TORS[place // 2]) for place, host in enumerate(hosts)]
    cables += [(tor, above) for tor in TORS for above in ABOVE]
    edges = [{"source": one, "target": other, "rate": "100Gbps"} for one, other in cables]
    return {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    count = draw(st.integers(2, 4))
    jobs = []
    for place in range(count):
        job: dict[str, Any] = {
            "model": draw(st.sampled_from(["bert", "crux-bert"])),
            "compute": f"{draw(st.integers(1, 4)) / 10}s",
            "communication": f"{draw(st.integers(1, 5))}GB",
            "overlap": draw(st.sampled_from([0, 0.5])),
            "jitter": draw(st.sampled_from([0, 0.1])),
            "channels": draw(st.sampled_from([1, 4])),
            "collective": draw(st.sampled_from(["ring", "alltoall"])),
            "gpus": draw(st.sampled_from([2, 4])) if count < 4 else 2,
            "iterations": 8,
        }
        jobs.append(job | ({"start": f"{place / 2}s"} if draw(st.booleans()) else {}))
    measure = {"iterations": 3, "warmup": 1, "time_limit": "500s"}
    found: Scenario = {"jobs": jobs, "schedulers": [draw(st.sampled_from(SCHEDULERS))], "measure": measure}
    found["seed"] = draw(st.integers(1, 99))
    found["placement_policy"] = draw(st.sampled_from(["first-free", "spread"]))
    if draw(st.integers(0, 3)) == 0:
        del found["placement_policy"]
        found["manager"] = draw(st.sampled_from(MANAGERS))
    return found


def run(scenario: Scenario, job_names: list[str], hosts: list[str]) -> str:
    """All that a run finds, as text, with its jobs and hosts called by their places."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "fabric.json").write_text(json.dumps(fabric_file(hosts)), "utf-8")
        jobs = [{"name": name, **job} for name, job in zip(job_names, scenario["jobs"], strict=False)]
        document = {**scenario, "fabric": {"node_link": "fabric.json"}, "jobs": jobs}
        path = Path(folder) / "drawn.yaml"
        path.write_text(yaml.safe_dump(document), "utf-8")
        (experiment,) = prepare(path, engine="flow").experiments
        record = with_alone(FlowEngine().run(experiment, Path(folder), lambda _message: None), experiment)
    place = {name: number for number, name in enumerate(job_names)}
    stints = {stint: f"{place[stint.partition('@')[0]]}@{stint.partition('@')[2]}" for stint in record.windows}
    gpu = experiment.fabric.gpu_place
    link = {name: number for number, name in enumerate(experiment.fabric.links)}
    rows = [
        (stints[r.job], gpu[r.gpu], r.iteration, r.start_s, r.compute_s, r.exposed_s, r.straggler_s, r.end_s)
        for r in record.iterations
    ]
    links = [(row.time_s, link[row.link], row.level, row.bytes) for row in record.links]
    numbers = json.dumps(summary(experiment, [record])["runs"][0]["gpu_utilization"])
    return repr((rows, links, numbers, [row.time_s for row in record.decisions]))


@given(scenarios(), NAMES, NAMES, NAMES, NAMES)
@settings(max_examples=200, deadline=None)
def test_a_run_has_the_same_numbers_whatever_jobs_and_hosts_are_called(
    scenario: Scenario, jobs: list[str], other_jobs: list[str], hosts: list[str], other_hosts: list[str]
) -> None:
    called = run(scenario, jobs, [f"h-{host}" for host in hosts])
    assert called == run(scenario, other_jobs, [f"h-{host}" for host in other_hosts])
