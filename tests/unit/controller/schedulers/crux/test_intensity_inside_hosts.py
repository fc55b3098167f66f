"""t_j and intensity where an emulation shapes the PCIe links inside hosts (Crux section 3.2: over all links)."""

from __future__ import annotations

import pytest

from controller.decision import ClusterView, JobArrived
from controller.schedulers.crux.intensity import profile
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.scheduler import Crux
from topologies.clos import clos
from topologies.fabric import Fabric, PcieQueues
from workloads.build import JobSpec, build_jobs
from workloads.job import Job

S = 8e9
PER_NIC = S / 4
"""Bytes that each of four NICs of two hosts sends in an allreduce of S."""


def fabric_with(pcie_queues: PcieQueues, pcie_rate: float) -> Fabric:
    return clos(
        hosts=4,
        gpus_per_host=8,
        nics_per_host=4,
        tors=2,
        aggregations=4,
        port_rate=200e9,
        fabric_rate=200e9,
        pcie_rate=pcie_rate,
        pcie_queues=pcie_queues,
    )


def two_jobs(fabric: Fabric) -> tuple[Job, Job]:
    """One on half of h0 and h2, one GPU at each NIC; one on whole h1 and h3."""
    halves = tuple(gpu for host in ("h0", "h2") for gpu in fabric.hosts[host].gpus[::2])
    whole = tuple(gpu for host in ("h1", "h3") for gpu in fabric.hosts[host].gpus)
    specs = [
        JobSpec(name, "bert", placement=gpus, compute_s=1.0, communication_bytes=S, overlap=0.0, flops=1e15)
        for name, gpus in (("half", halves), ("whole", whole))
    ]
    one, two = build_jobs(specs, fabric)
    return one, two


def noted(fabric: Fabric, key: str) -> dict[str, float]:
    view = ClusterView(fabric, {job.name: job for job in two_jobs(fabric)}, level_count=8)
    found = Crux().decide(view, JobArrived("half")).notes[key]
    assert isinstance(found, dict)
    return found


def test_a_slow_pcie_link_between_switch_and_nic_is_the_worst_link_once_paths_are_assigned() -> None:
    fabric = fabric_with("emulated", 50e9)
    assert noted(fabric, "communication_s") == pytest.approx(dict.fromkeys(("half", "whole"), 8 * PER_NIC / 50e9))
    assert noted(fabric, "intensity") == pytest.approx({"half": 8e15 / 0.32, "whole": 16e15 / 0.32})


def test_the_link_of_a_gpu_is_the_worst_where_one_gpu_sends_all_of_its_nic() -> None:
    fabric = fabric_with("emulated", 50e9)
    for job in two_jobs(fabric):
        gpus_per_nic = len(job.gpus) // 8
        assert job.inside["h0g0->h0s0" if job.name == "half" else "h1g0->h1s0"] == pytest.approx(PER_NIC / gpus_per_nic)


@pytest.mark.parametrize("rate", [50e9, 256e9])
def test_pcie_that_no_emulation_shapes_counts_nowhere(rate: float) -> None:
    assert noted(fabric_with("ideal", rate), "communication_s")["whole"] == pytest.approx(8 * PER_NIC / 200e9)


def test_pcie_faster_than_its_nic_changes_no_intensity() -> None:
    assert noted(fabric_with("emulated", 256e9), "intensity") == noted(fabric_with("ideal", 256e9), "intensity")


def test_before_paths_are_chosen_pcie_links_count_as_well() -> None:
    fabric = fabric_with("emulated", 50e9)
    for job in two_jobs(fabric):
        alone = profile(job, fabric)
        assert alone.communication_s == pytest.approx(8 * PER_NIC / 50e9)
        assert FabricIndex.of(fabric).job(job).alone == alone
