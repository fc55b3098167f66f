"""When every communication scheduler will do the same: nothing can contend, or nothing that contends can be seen."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testbed.api import prepare, run_scenario
from testbed.experiment.contention import HIDDEN, NO_CONTENTION, nothing_to_schedule
from testbed.metrics.formats import percent
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.analysis import isolated
from workloads.build import JobSpec, build_jobs


def fabric(tors: int = 2, aggregations: int = 2, hosts: int = 4) -> Fabric:
    shape = {"gpus_per_host": 2, "nics_per_host": 1, "port_rate": 100e9, "fabric_rate": 100e9}
    return clos(hosts=hosts, tors=tors, aggregations=aggregations, **shape)


def job(name: str, hosts: tuple[str, ...], size: float, overlap: float = 0.5, **changes: object) -> JobSpec:
    """A ring over ``hosts`` that computes for 1 s and takes ``size`` / 12.5e9 s to send."""
    spec = JobSpec(
        name=name,
        model="bert",
        placement=tuple(f"{host}g{gpu}" for host in hosts for gpu in (0, 1)),
        compute_s=1.0,
        communication_bytes=size,
        overlap=overlap,
        collective="hierarchical",
        iterations=10,
    )
    return dataclasses.replace(spec, **changes)


def half(name: str, gpu: int) -> JobSpec:
    """One GPU of each of two hosts under one ToR: whoever has the other shares their NICs."""
    return job(name, INSIDE, LARGE, placement=tuple(f"{host}g{gpu}" for host in INSIDE))


def said(*specs: JobSpec, on: Fabric | None = None) -> str:
    made = on or fabric()
    return nothing_to_schedule(build_jobs(list(specs), made), made)


ACROSS, BESIDE, INSIDE, EVERYWHERE = ("h0", "h2"), ("h1", "h3"), ("h0", "h1"), ("h0", "h1", "h2", "h3")
SMALL, MEDIUM, LARGE = 0.05e9, 0.5e9, 10e9


@pytest.mark.parametrize(
    ("why", "specs"),
    [
        ("both are hidden, also if they meet", [job("a", ACROSS, MEDIUM), job("b", BESIDE, MEDIUM)]),
        ("alone, and its own collisions are hidden", [job("a", EVERYWHERE, SMALL, collective="alltoall")]),
    ],
)
def test_hidden_communication_leaves_nothing_to_schedule(why: str, specs: list[JobSpec]) -> None:
    assert said(*specs) == HIDDEN, why


@pytest.mark.parametrize(
    ("why", "specs", "tors"),
    [
        ("each is under a ToR of its own", [job("a", INSIDE, LARGE), job("b", ("h2", "h3"), LARGE)], 2),
        ("one ToR has no two paths", [job("a", INSIDE, LARGE), job("b", ("h2", "h3"), LARGE)], 1),
        ("jobs inside a host send nothing", [job("a", ("h0",), LARGE), job("b", ("h1",), LARGE)], 2),
    ],
)
def test_without_contention_there_is_nothing_to_schedule(why: str, specs: list[JobSpec], tors: int) -> None:
    assert said(*specs, on=fabric(tors)) == NO_CONTENTION, why


@pytest.mark.parametrize(
    ("why", "specs"),
    [
        ("exposed, and they may meet", [job("a", ACROSS, LARGE), job("b", BESIDE, LARGE)]),
        ("hidden alone, exposed if the other goes first", [job("a", ACROSS, SMALL), job("b", BESIDE, LARGE)]),
        ("serial communication is never hidden", [job("a", ACROSS, SMALL, 0.0), job("b", BESIDE, SMALL, 0.0)]),
        ("flows of one job may take one uplink", [job("a", EVERYWHERE, LARGE, collective="alltoall")]),
        (
            "jitter may leave no compute to hide behind",
            [job("a", ACROSS, MEDIUM, jitter=0.3), job("b", BESIDE, MEDIUM)],
        ),
        ("jobs inside one ToR share a NIC", [half("a", 0), half("b", 1)]),
    ],
)
def test_where_schedulers_can_differ_nothing_is_said(why: str, specs: list[JobSpec]) -> None:
    assert said(*specs) == "", why


def test_gradients_beside_all_to_alls_are_contention_within_a_job() -> None:
    lina = prepare("lina", engine="flow")
    assert nothing_to_schedule(lina.jobs, lina.fabric) == ""


def test_jobs_that_a_manager_will_place_are_not_judged() -> None:
    assert nothing_to_schedule((), fabric()) == ""


@pytest.mark.parametrize("scenario", ["clos96", "clos96-2to1", "hello", "moe-alltoall", "clos1024"])
def test_the_bundled_comparisons_have_something_to_compare(scenario: str) -> None:
    prepared = prepare(scenario, engine="flow")
    assert nothing_to_schedule(prepared.jobs, prepared.fabric) == ""


@given(
    size=st.floats(0.01e9, 4e9), overlap=st.floats(0.0, 1.0), collective=st.sampled_from(["hierarchical", "alltoall"])
)
@settings(max_examples=60, deadline=None)
def test_hidden_is_only_said_where_the_worst_paths_hide_it_too(size: float, overlap: float, collective: str) -> None:
    """Every flow of the job alone on the first of its paths, which all share: still no GPU waits."""
    made = fabric()
    (found,) = build_jobs([job("a", EVERYWHERE, size, overlap, collective=collective)], made)
    piled = {flow.id: made.candidate_paths(flow.source, flow.target)[0] for flow in found.flows}
    if nothing_to_schedule([found], made) == HIDDEN:
        assert isolated(found, made, piled).exposed_s == pytest.approx(0.0, abs=1e-9)


def test_schedulers_do_the_same_where_there_is_nothing_to_schedule(tmp_path: Path) -> None:
    changes = ["jobs.big.communication=20MB", "jobs.small.communication=20MB", "jobs.small.overlap=0.5", "checks=[]"]
    names = ["ecmp", "crux", "sincronia"]
    done = run_scenario("hello", engine="flow", schedulers=names, overrides=changes, out=tmp_path)
    assert done.summary["nothing_to_schedule"] == HIDDEN
    first, *others = [run["gpu_utilization"] for run in done.summary["runs"]]
    assert others == pytest.approx([first, first], abs=1e-4)


@given(
    compute_s=st.sampled_from([1e-9, 1e-6, 1e-4, 1e-3, 0.1]),
    size=st.sampled_from([1.0, 1e3, 1e5, 1e7]),
    overlap=st.sampled_from([0.0, 0.5, 1.0]),
)
@example(compute_s=1e-6, size=1.0, overlap=1.0)  # sending a byte takes the latency of links, longer than it computes
@example(compute_s=0.1, size=1e5, overlap=1.0)
@settings(max_examples=15, deadline=None)
def test_hidden_is_never_said_beside_a_table_that_shows_exposed_communication(
    compute_s: float, size: float, overlap: float
) -> None:
    shape = {"hosts": 4, "gpus_per_host": 2, "nics_per_host": 1, "tors": 2, "aggregations": 2}
    times = {"compute": f"{compute_s * 1e9:.0f}ns", "communication": f"{size:.0f}B", "overlap": overlap}
    document = {
        "fabric": {"kind": "clos", **shape, "port_rate": "100Gbps", "fabric_rate": "100Gbps"},
        "jobs": [
            {"name": name, "model": "bert", "placement": list(hosts), **times}
            for name, hosts in (("a", ACROSS), ("b", BESIDE))
        ],
        "schedulers": ["ecmp"],
        "measure": {"iterations": 3, "warmup": 1},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "small.yaml"
        path.write_text(yaml.safe_dump(document), "utf-8")
        summary = run_scenario(str(path), engine="flow", out=Path(folder)).summary
    (run,) = summary["runs"]
    assert compute_s < 0.1 or size > 1e5 or overlap < 1.0 or summary["nothing_to_schedule"] == HIDDEN
    if summary["nothing_to_schedule"] == HIDDEN:
        assert percent(run["gpu_idle_s"]["exposed"] / run["allocated_gpu_s"]) == "0.0"
