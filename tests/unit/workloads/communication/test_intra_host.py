"""What collectives move inside hosts, and what that takes: NVLink, PCIe, and the way between GPU and NIC."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from topologies.fabric import Fabric, IntraHost, PcieQueues
from workloads.analysis import isolated
from workloads.build import JobSpec, build_jobs
from workloads.communication.collectives import COLLECTIVES
from workloads.job import Job

S = 8e9
RATE = 200e9


def fabric_with(
    intra_host: IntraHost = "instant", pcie_queues: PcieQueues = "ideal", pcie_rate: float = 256e9, ports: int = 1
) -> Fabric:
    return clos(
        hosts=4,
        gpus_per_host=8,
        nics_per_host=4,
        tors=2,
        aggregations=2,
        port_rate=RATE / ports,
        fabric_rate=RATE,
        ports_per_nic=ports,
        pcie_rate=pcie_rate,
        intra_host=intra_host,
        pcie_queues=pcie_queues,
    )


def job_on(fabric: Fabric, placement: list[str], collective: str = "hierarchical", compute_s: float = 1.0) -> Job:
    gpus = tuple(gpu for item in placement for gpu in (fabric.hosts[item].gpus if item in fabric.hosts else (item,)))
    spec = JobSpec(
        "j", "bert", placement=gpus, compute_s=compute_s, communication_bytes=S, overlap=0.0, collective=collective
    )
    return build_jobs([spec], fabric)[0]


def test_by_default_nothing_inside_hosts_counts() -> None:
    assert job_on(fabric_with(), ["h0", "h1"]).phases[0].inside == ()


def test_options_change_neither_flows_nor_transfers() -> None:
    plain = job_on(fabric_with(), ["h0", "h1"])
    counted = job_on(fabric_with("pcie", "emulated"), ["h0", "h1"])
    assert counted.flows == plain.flows
    assert [replace(phase, inside=()) for phase in counted.phases] == list(plain.phases)


def test_gpus_of_a_host_reduce_in_a_ring_over_nvlink() -> None:
    inside = job_on(fabric_with("nvlink"), ["h0", "h1"]).inside
    gpus = [(f"h{host}g{gpu}", f"h{host}nv") for host in (0, 1) for gpu in range(8)]
    assert set(inside) == {f"{a}->{b}" for gpu, hub in gpus for a, b in ((gpu, hub), (hub, gpu))}
    assert list(inside.values()) == pytest.approx([2 * 7 / 8 * S] * 32)


def test_over_pcie_the_ring_crosses_the_root_complex_from_switch_to_switch() -> None:
    inside = job_on(fabric_with("pcie"), ["h0"]).inside
    assert inside["h0g0->h0s0"] == inside["h0s0->h0rc"] == inside["h0rc->h0s1"] == pytest.approx(2 * 7 / 8 * S)
    assert "h0s0->h0n0" not in inside


def test_two_gpus_of_one_pcie_switch_do_not_need_the_root_complex() -> None:
    inside = job_on(fabric_with("pcie"), ["h0g0", "h0g1"]).inside
    assert set(inside) == {"h0g0->h0s0", "h0s0->h0g0", "h0g1->h0s0", "h0s0->h0g1"}
    assert set(inside.values()) == {S}


def test_a_job_inside_one_host_takes_the_time_of_its_nvlinks() -> None:
    fabric = fabric_with("nvlink")
    alone = isolated(job_on(fabric, ["h0"]), fabric)
    assert alone.communication_s == pytest.approx(2 * 7 / 8 * S * 8 / 2400e9)
    assert alone.iteration_s == pytest.approx(1.0 + alone.communication_s)
    assert isolated(job_on(fabric_with(), ["h0"]), fabric_with()).communication_s == 0


def test_half_collectives_move_half_as_much_and_pipeline_stages_nothing() -> None:
    for collective, factor in (("reduce-scatter", 7 / 8), ("all-gather", 7 / 8), ("point-to-point", 0.0)):
        inside = job_on(fabric_with("nvlink"), ["h0", "h1"], collective).inside
        assert list(inside.values()) == pytest.approx([factor * S] * 32 if factor else [])


def test_a_flat_ring_passes_every_gpu_of_a_host_once() -> None:
    inside = job_on(fabric_with("nvlink"), ["h0", "h1"], "ring").inside
    assert "h0g7->h0nv" not in inside and "h0nv->h0g0" not in inside
    assert inside["h0g0->h0nv"] == inside["h0nv->h0g7"] == pytest.approx(2 * 7 / 8 * S)


def test_all_to_all_exchanges_in_the_host_and_hands_on_what_came_in_on_other_rails() -> None:
    inside = job_on(fabric_with("nvlink"), ["h0", "h1"], "alltoall").inside
    assert inside["h0g0->h0nv"] == pytest.approx(S * 7 / 16 + S * 8 / 16 * 3 / 4)


def test_pcie_between_gpu_and_nic_limits_what_the_ports_could_carry() -> None:
    fabric = fabric_with(pcie_queues="emulated", pcie_rate=100e9, ports=2)
    alone = isolated(job_on(fabric, ["h0", "h2"]), fabric)
    per_nic = 2 * 1 / 2 * S / 4
    assert alone.bytes_by_link["h0s0->h0n0"] == alone.bytes_by_link["h0n0->h0s0"] == pytest.approx(per_nic)
    assert alone.bytes_by_link["h0g0->h0s0"] == pytest.approx(per_nic / 2)
    assert alone.communication_s == pytest.approx(per_nic * 8 / 100e9)


def test_pcie_4_is_faster_than_a_nic_of_200_gbps_and_changes_nothing() -> None:
    counted, plain = fabric_with(pcie_queues="emulated"), fabric_with()
    for collective in COLLECTIVES:
        one, other = (isolated(job_on(each, ["h0", "h2"], collective), each) for each in (counted, plain))
        assert (one.iteration_s, one.communication_s) == (other.iteration_s, other.communication_s)


def test_gpu_traffic_and_network_traffic_add_up_on_pcie() -> None:
    gpus = ["h0g0", "h0g1", "h2g0", "h2g1"]
    inside = job_on(fabric_with("pcie"), gpus).inside
    assert inside["h0g0->h0s0"] == pytest.approx(S + S / 2)
    assert inside["h0s0->h0n0"] == pytest.approx(S)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(COLLECTIVES)),
    st.sampled_from(["nvlink", "pcie"]),
    st.sampled_from(["ideal", "emulated"]),
    st.sets(st.integers(0, 31), min_size=1, max_size=20),
)
def test_links_are_those_of_the_jobs_hosts_and_what_leaves_gpus_reaches_gpus_or_nics(
    collective: str, intra_host: IntraHost, pcie_queues: PcieQueues, chosen: set[int]
) -> None:
    fabric = fabric_with(intra_host, pcie_queues)
    job = job_on(fabric, [fabric.gpus[index] for index in sorted(chosen)], collective)
    assert set(job.inside) <= fabric.links.keys()
    own = set(job.gpus)
    for link in job.inside:
        ends = {fabric.links[link].source, fabric.links[link].target}
        assert ends & own or not ends & set(fabric.gpus)
    for node in {fabric.links[link].target for link in job.inside} - own - set(fabric.nics):
        arrived = sum(size for link, size in job.inside.items() if fabric.links[link].target == node)
        left = sum(size for link, size in job.inside.items() if fabric.links[link].source == node)
        assert arrived == pytest.approx(left)
