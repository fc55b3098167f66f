"""Small experiments and runs, built by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.decision import Decision
from testbed.engines.flow.alone import with_alone
from testbed.experiment.experiment import Experiment, Measure, Scale
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.summary import summary
from testbed.results.record import DecisionRow, Fidelity, IterationRow, LinkRow, RunRecord, Window
from testbed.results.run_directory import RunDirectory
from topologies.fabric import Fabric, Host, Link, Nic, Port, Switch
from workloads.job import Flow, Job, Phase, Transfer

GBIT = 1e9


def _cable(source: str, target: str, kind: Any, capacity: float = 200 * GBIT) -> dict[str, Link]:
    there, back = f"{source}->{target}", f"{target}->{source}"
    return {
        there: Link(there, source, target, kind, capacity, back),
        back: Link(back, target, source, kind, capacity, there),
    }


def two_rail_fabric() -> Fabric:
    """Two hosts of 4 GPUs and 2 NICs, a ToR each, two aggregation switches."""
    hosts, nics, ports, links = {}, {}, {}, {}
    for h in range(2):
        gpus = tuple(f"h{h}g{g}" for g in range(4))
        hosts[f"h{h}"] = Host(f"h{h}", h, gpus, (f"h{h}n0", f"h{h}n1"))
        for n in range(2):
            port = f"h{h}n{n}p0"
            nics[f"h{h}n{n}"] = Nic(f"h{h}n{n}", f"h{h}", n, f"h{h}s{n}", (port,), gpus[2 * n : 2 * n + 2])
            ports[port] = Port(port, f"h{h}", f"h{h}n{n}", f"tor{h}")
            links |= _cable(port, f"tor{h}", "host-tor") | _cable(f"h{h}s{n}", f"h{h}n{n}", "pcie")
        for a in range(2):
            links |= _cable(f"tor{h}", f"agg{a}", "tor-agg")
    switches = {f"tor{i}": Switch(f"tor{i}", "tor", i) for i in range(2)}
    switches |= {f"agg{i}": Switch(f"agg{i}", "agg", i) for i in range(2)}
    return Fabric("small", hosts, nics, ports, switches, links)


def ring_job(name: str, gpus: tuple[str, ...], nics: tuple[int, ...], *, compute_s: float, iterations: int = 10) -> Job:
    """A job on both hosts that sends 2.5 GB (0.1 s at 200 Gbit/s) each way on each of ``nics``, after its compute."""
    size = 2.5e9
    ends = [(f"h0n{n}p0", f"h1n{n}p0") for n in nics] + [(f"h1n{n}p0", f"h0n{n}p0") for n in nics]
    flows = tuple(
        Flow(f"{name}/{index}", name, source, target, size, 20000 + index, 5000 + index)
        for index, (source, target) in enumerate(ends)
    )
    phase = Phase(compute_s, 0.0, "ring", tuple(Transfer(flow.id, size) for flow in flows))
    return Job(name, f"model-{name}", gpus, (phase,), flows, 1e15, iterations)


def small_experiment() -> Experiment:
    """``big`` on 6 GPUs (both NICs), ``small`` on 2 (one NIC); both cross the fabric."""
    big = ring_job("big", ("h0g0", "h0g1", "h0g2", "h1g0", "h1g1", "h1g2"), (0, 1), compute_s=0.9)
    small = ring_job("small", ("h0g3", "h1g3"), (1,), compute_s=0.4, iterations=50)
    measure, scale = Measure(iterations=4, warmup=1, time_limit_s=60.0), Scale(32000.0, 2.0)
    return Experiment("small", two_rail_fabric(), (big, small), SchedulerChoice("ecmp"), measure, scale, 8, 1)


def rows_of(
    job: Job, exposed_s: float, *, count: int, start: float = 0.0, straggler_s: float = 0.0
) -> list[IterationRow]:
    """``count`` identical iterations, back to back, on every GPU."""
    length = job.compute_s + exposed_s + straggler_s
    return [
        IterationRow(
            job=job.name,
            gpu=gpu,
            iteration=i,
            start_s=start + i * length,
            compute_s=job.compute_s,
            communication_s=exposed_s,
            exposed_s=exposed_s,
            straggler_s=straggler_s,
            end_s=start + (i + 1) * length,
        )
        for i in range(count)
        for gpu in job.gpus
    ]


def small_record(
    experiment: Experiment,
    scheduler: str,
    exposed_s: tuple[float, float],
    levels: dict[str, int],
    *,
    same_path: bool = False,
    fidelity: Fidelity | None = None,
) -> RunRecord:
    """Five iterations of ``big`` and what fits of ``small``; ``same_path`` sends all flows over one aggregation."""
    big, small = experiment.jobs
    paths = {}
    for job in experiment.jobs:
        for index, flow in enumerate(job.flows):
            choices = experiment.fabric.candidate_paths(flow.source, flow.target)
            paths[flow.id] = choices[0 if same_path else index % len(choices)]
    length = big.compute_s + exposed_s[0]
    end = 5 * length
    count = int(end / (small.compute_s + exposed_s[1]))
    notes = {"intensity": {"big": 1.0e16, "small": 5.0e15}}
    links = [
        LinkRow(float(second), link.name, level, 1.0e9 * (level + 1), 0.0, 0)
        for second in range(1, int(end) + 1)
        for link in experiment.fabric.network_links
        for level in sorted(set(levels.values()) or {7})
    ]
    return RunRecord(
        choice=SchedulerChoice(scheduler),
        engine="flow",
        duration_s=end,
        windows={"big": Window(length, end), "small": Window(length, count * (small.compute_s + exposed_s[1]))},
        iterations=(*rows_of(big, exposed_s[0], count=5), *rows_of(small, exposed_s[1], count=count)),
        links=tuple(links),
        decisions=(DecisionRow(0.0, "arrival of big", Decision(paths, levels, notes=notes), 0.05),),
        fidelity=fidelity or Fidelity(min_idle_cpu=0.41, max_timer_lateness_s=0.003),
        environment={"datapath": "userspace"},
    )


@pytest.fixture(scope="session")
def experiment() -> Experiment:
    """The small experiment."""
    return small_experiment()


@pytest.fixture(scope="session")
def records(experiment: Experiment) -> tuple[RunRecord, RunRecord]:
    """ECMP with every flow on one path and one level; Crux with two paths and two levels."""
    return (
        with_alone(small_record(experiment, "ecmp", (0.3, 0.3), {}, same_path=True), experiment),
        with_alone(small_record(experiment, "crux", (0.1, 0.12), {"big": 0, "small": 1}), experiment),
    )


@pytest.fixture
def write_run(tmp_path: Path, experiment: Experiment) -> Callable[..., RunDirectory]:
    """Write a finished run directory of the given records."""

    def write(*runs: RunRecord, finish: bool = True) -> RunDirectory:
        directory = RunDirectory.create(tmp_path, experiment.name, now=0.0)
        directory.write_manifest({"command": ["testbed", "run", "small.yaml"], "versions": {"python": "3.11"}})
        directory.write_experiment(experiment)
        for record in runs:
            directory.write_record(record, experiment)
        directory.write_summary(summary(experiment, runs))
        if finish:
            directory.finish()
        return directory

    return write
