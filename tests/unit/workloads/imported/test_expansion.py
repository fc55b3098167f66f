"""Groups of ranks on GPUs: tensor-parallel traffic stays inside hosts, data-parallel traffic goes from host to host."""

from __future__ import annotations

from collections import Counter

import pytest

from topologies.clos import clos
from topologies.fabric import IntraHost
from workloads.build import JobSpec, build_jobs
from workloads.errors import JobError
from workloads.imported.workload import Collective, CollectiveKind, GroupKind, ImportedWorkload, Parallelism, Stretch
from workloads.job import Job


def job(
    *stretches: Stretch,
    gpus: int = 8,
    tensor: int = 1,
    expert: int = 1,
    pipeline: int = 1,
    inside: IntraHost = "instant",
) -> Job:
    """A job of hosts of four GPUs, a NIC each."""
    fabric = clos(
        hosts=4,
        tors=2,
        aggregations=2,
        gpus_per_host=4,
        nics_per_host=4,
        port_rate=100e9,
        fabric_rate=100e9,
        intra_host=inside,
    )
    workload = ImportedWorkload("simai", "file", Parallelism(gpus, tensor, expert, pipeline), stretches)
    return build_jobs([JobSpec("a", "simai", gpus, workload=workload)], fabric)[0]


def sends(kind: CollectiveKind, group: GroupKind, size: float = 800.0, *, background: bool = False) -> Stretch:
    return Stretch(1.0, Collective(kind, group, size, background))


def test_a_tensor_group_inside_a_host_sends_no_packets_and_its_compute_is_kept() -> None:
    made = job(sends("allreduce", "tensor"), sends("allreduce", "data"), tensor=4)
    assert [phase.compute_s for phase in made.phases] == [2.0]
    assert {flow.source[:4] for flow in made.flows} == {f"h{host}n{nic}" for host in (0, 1) for nic in range(4)}


def test_where_links_inside_hosts_count_its_bytes_are_on_them() -> None:
    made = job(sends("allreduce", "tensor"), tensor=4, inside="nvlink")
    assert not made.flows
    assert set(made.inside.values()) == {2 * 3 / 4 * 800.0}


def test_every_data_group_has_a_ring_of_its_own_on_the_nics_of_its_gpus() -> None:
    made = job(sends("allreduce", "data"), tensor=4)
    # Four groups of two GPUs, one on each host: each NIC sends 2 (n - 1) / n S.
    assert Counter(flow.source for flow in made.flows) == {f"h{h}n{n}p0": 1 for h in (0, 1) for n in range(4)}
    assert {flow.bytes for flow in made.flows} == {800.0}


def test_an_all_to_all_of_experts_stays_inside_its_groups() -> None:
    made = job(sends("alltoall", "expert"), gpus=16, tensor=4, expert=2)
    pairs = {(flow.source[:2], flow.target[:2]) for flow in made.flows}
    assert pairs == {("h0", "h1"), ("h1", "h0"), ("h2", "h3"), ("h3", "h2")}
    assert sum(flow.bytes for flow in made.flows) == pytest.approx(16 * 800.0 / 2)


def test_stages_pass_on_what_they_computed_and_get_gradients_back() -> None:
    there = Stretch(1.0, Collective("point-to-point", "pipeline", 10.0))
    back = Stretch(1.0, Collective("point-to-point", "pipeline", 10.0, returning=True))
    made = job(there, back, pipeline=2)
    assert Counter((flow.source[:2], flow.target[:2]) for flow in made.flows) == {("h0", "h1"): 4, ("h1", "h0"): 4}


def test_groups_that_share_a_pair_of_ports_have_connections_of_their_own() -> None:
    fabric = clos(hosts=2, tors=2, aggregations=1, gpus_per_host=4, nics_per_host=1, port_rate=100e9, fabric_rate=100e9)
    workload = ImportedWorkload("simai", "file", Parallelism(8, tensor=4), (sends("allreduce", "data"),))
    (made,) = build_jobs([JobSpec("a", "simai", 8, workload=workload)], fabric)
    assert len(made.flows) == 8
    (phase,) = made.phases
    assert Counter(transfer.flow for transfer in phase.transfers).most_common(1)[0][1] == 1
    assert phase.groups == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_collectives_in_the_background_have_connections_of_their_own() -> None:
    made = job(sends("allreduce", "data", background=True), sends("allreduce", "data", background=True), tensor=4)
    assert [phase.background for phase in made.phases] == [True, True]
    first, second = ({transfer.flow for transfer in phase.transfers} for phase in made.phases)
    assert first and second and not first & second


def test_a_broadcast_goes_along_a_chain_of_hosts() -> None:
    made = job(sends("broadcast", "all", 400.0), gpus=16)
    assert Counter((flow.source[:2], flow.target[:2]) for flow in made.flows) == {
        ("h0", "h1"): 4,
        ("h1", "h2"): 4,
        ("h2", "h3"): 4,
    }
    assert {flow.bytes for flow in made.flows} == {100.0}


def test_a_job_of_another_size_is_refused() -> None:
    workload = ImportedWorkload("simai", "file", Parallelism(8), (Stretch(1.0),))
    fabric = clos(hosts=4, tors=2, aggregations=1, gpus_per_host=4, nics_per_host=1, port_rate=1e9, fabric_rate=1e9)
    with pytest.raises(JobError, match="has 4 GPUs, its workload is for 8"):
        build_jobs([JobSpec("a", "simai", 4, workload=workload)], fabric)


def test_what_the_file_says_is_not_said_again() -> None:
    workload = ImportedWorkload("simai", "file", Parallelism(8), (Stretch(1.0),))
    fabric = clos(hosts=4, tors=2, aggregations=1, gpus_per_host=4, nics_per_host=1, port_rate=1e9, fabric_rate=1e9)
    with pytest.raises(JobError, match="overlap is for models of the catalogue"):
        build_jobs([JobSpec("a", "simai", 8, workload=workload, overlap=0.5)], fabric)
