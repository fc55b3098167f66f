"""A job with another one's shape is the same job as one that is built on its own, and costs no second build."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workloads.job_shapes
from topologies.clos import clos
from topologies.double_sided import double_sided
from topologies.fabric import Fabric, IntraHost
from topologies.generators.rail_optimized import rail_optimized
from workloads.build import JobError, JobSpec, build_jobs
from workloads.communication.collectives import COLLECTIVES
from workloads.connections import PortBook
from workloads.job import Job
from workloads.job_shapes import JobShapes
from workloads.models.catalogue import CATALOGUE


def small_clos(hosts: int, intra_host: IntraHost = "instant") -> Fabric:
    return clos(
        hosts=hosts,
        gpus_per_host=8,
        nics_per_host=4,
        ports_per_nic=2,
        tors=hosts // 2,
        aggregations=2,
        port_rate=100e9,
        fabric_rate=400e9,
        intra_host=intra_host,
    )


def unequal_hosts() -> Fabric:
    """Hosts of which every other one has one NIC less, with the GPUs of which its first NIC is nearest to more."""
    fabric = small_clos(6)
    hosts, nics = dict(fabric.hosts), dict(fabric.nics)
    for name in list(hosts)[::2]:
        first, *_, last = hosts[name].nics
        nics[first] = replace(nics[first], gpus=(*nics[first].gpus, *nics[last].gpus))
        nics[last] = replace(nics[last], gpus=())
        hosts[name] = replace(hosts[name], nics=hosts[name].nics[:-1])
    return replace(fabric, hosts=hosts, nics=nics)


FABRICS = {
    "clos": small_clos(8),
    "double-sided": double_sided(hosts=6),
    "rails": rail_optimized(hosts=6, segments=2, nics_per_host=4, aggregations=2),
    "unequal": unequal_hosts(),
    "nvlink": small_clos(6, "nvlink"),
    "pcie": small_clos(6, "pcie"),
}


def without_draws(job: Job) -> Job:
    """A job of a trace has the draws of its id there, any other those of its place."""
    return replace(job, flows=tuple(replace(flow, source_port=0) for flow in job.flows))


def alone(spec: JobSpec, fabric: Fabric) -> Job:
    return build_jobs([spec], fabric)[0]


@given(
    fabric=st.sampled_from(list(FABRICS.values())),
    model=st.sampled_from(list(CATALOGUE)),
    collective=st.none() | st.sampled_from(list(COLLECTIVES)),
    volume=st.none() | st.sampled_from([0.0, 1e6, 3.3e9]),
    channels=st.integers(1, 3),
    data=st.data(),
)
def test_every_job_is_the_one_that_is_built_directly(
    fabric: Fabric, model: str, collective: str | None, volume: float | None, channels: int, data: st.DataObject
) -> None:
    def asked(name: str, model: str, gpus: tuple[str, ...]) -> JobSpec:
        return JobSpec(
            name, model, placement=gpus, communication_bytes=volume, collective=collective, channels=channels
        )

    shapes, hosts = JobShapes(fabric, asked), list(fabric.hosts.values())
    count = data.draw(st.integers(1, min(4, len(hosts))))
    spots = [(host, gpu) for host in range(count) for gpu in range(8)]
    chosen = data.draw(st.lists(st.sampled_from(spots), min_size=1, max_size=20, unique=True))
    for number in range(3):
        own = data.draw(st.permutations(hosts))[:count]
        gpus = tuple(own[host].gpus[gpu % len(own[host].gpus)] for host, gpu in chosen)
        if len(set(gpus)) < len(gpus):
            continue
        made, direct = shapes.job(f"job{number}", model, gpus), alone(asked(f"job{number}", model, gpus), fabric)
        for field in fields(Job):
            if field.name not in ("flows", "flow_by_id"):
                assert getattr(made, field.name) == getattr(direct, field.name), field.name
        assert without_draws(made) == without_draws(direct)
        by_id, fresh = PortBook(1, fabric), JobShapes(fabric, asked).job(f"job{number}", model, gpus)
        assert made.flows == fresh.flows
        assert [flow.source_port for flow in made.flows] == [by_id.source_port_by(f.id, f.source) for f in made.flows]
        assert list(made.flow_by_id) == list(direct.flow_by_id)


@pytest.mark.parametrize("model", CATALOGUE)
def test_a_shape_is_built_once(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def counted(specs: list[JobSpec], fabric: Fabric, seed: int) -> tuple[Job, ...]:
        built.extend(spec.name for spec in specs)
        return build_jobs(specs, fabric, seed=seed)

    monkeypatch.setattr(workloads.job_shapes, "build_jobs", counted)
    fabric = FABRICS["clos"]
    shapes = JobShapes(fabric, lambda name, model, gpus: JobSpec(name, model, placement=gpus))
    for number in range(0, 5, 2):
        shapes.job(f"job{number}", model, fabric.gpus[8 * number : 8 * number + 12])
    shapes.job("other", model, fabric.gpus[1:13])
    assert built == ["job0", "other"]


def test_what_cannot_be_built_is_refused_as_it_is_directly() -> None:
    fabric = FABRICS["clos"]
    shapes = JobShapes(fabric, lambda name, model, gpus: JobSpec(name, model, placement=gpus))
    shapes.job("fine", "bert", fabric.gpus[:9])
    for name, model, gpus in (
        ("a:b", "bert", fabric.gpus[:9]),
        ("job", "bret", fabric.gpus[:9]),
        ("job", "bert", (*fabric.gpus[:8], "h99g0")),
        ("job", "bert", (*fabric.gpus[:8], fabric.gpus[0])),
        ("job", "bert", ()),
    ):
        with pytest.raises(JobError) as direct:
            alone(JobSpec(name, model, placement=gpus), fabric)
        with pytest.raises(JobError) as by_shape:
            shapes.job(name, model, gpus)
        assert str(by_shape.value) == str(direct.value)


def test_shapes_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads.job_shapes, "MOST_SHAPES", 2)
    fabric = FABRICS["clos"]
    shapes = JobShapes(fabric, lambda name, model, gpus: JobSpec(name, model, placement=gpus))
    for count in (*range(9, 14), *range(9, 14)):
        gpus = fabric.gpus[:count]
        made, direct = shapes.job("job", "bert", gpus), alone(JobSpec("job", "bert", placement=gpus), fabric)
        assert without_draws(made) == without_draws(direct)
