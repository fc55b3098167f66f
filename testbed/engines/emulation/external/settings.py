"""What the command of a job of kind ``external`` is told on each of its hosts. Pure."""

from __future__ import annotations

from pathlib import Path

from testbed.engines.common.worker_plan import emulated_size, hosts_of
from testbed.experiment.experiment import Experiment
from topologies.addressing import address_of
from topologies.fabric import Fabric
from workloads.external import FIRST_PORT, PORTS_PER_JOB, HostSetting, variables
from workloads.job import Job


def host_settings(job: Job, fabric: Fabric) -> list[HostSetting]:
    """Return the hosts of ``job`` in the order of rank, each with the first port of the GPUs' NICs."""
    found = []
    for rank, host in enumerate(hosts_of(job, fabric)):
        gpus = [gpu for gpu in job.gpus if fabric.host_of_gpu[gpu] == host]
        nic = next(nic for nic in fabric.hosts[host].nics if set(gpus) & set(fabric.nics[nic].gpus))
        port = fabric.nics[nic].ports[0]
        found.append(HostSetting(rank, host, address_of(fabric, port), port, len(gpus)))
    return found


def variables_of(job: Job, experiment: Experiment) -> dict[str, dict[str, str]]:
    """Return host -> variable -> value for the command of ``job``."""
    assert job.external is not None
    hosts = host_settings(job, experiment.fabric)
    names = [each.name for each in experiment.jobs if each.external is not None]
    port = FIRST_PORT + PORTS_PER_JOB * names.index(job.name)
    declared = job.external.communication
    size = 0 if declared is None else emulated_size(experiment.scale, declared)
    return {each.host: variables(hosts, each.rank, port, size) for each in hosts}


def environment_of_host(values: dict[str, str], folder: Path, socket: Path) -> dict[str, str]:
    """Return the variables as the environment has them, and where the testbed is reached."""
    own = {f"TESTBED_{name.upper()}": value for name, value in values.items()}
    return {**own, "TESTBED_FOLDER": str(folder), "TESTBED_CLIENT": str(socket)}
