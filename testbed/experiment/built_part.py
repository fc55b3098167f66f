"""What of a fabric the emulation of an experiment builds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from testbed.experiment.experiment import Experiment
from topologies.built_part import BuiltPart, used_part, whole
from topologies.fabric import Fabric
from workloads.job import Job


def built_part_of(experiment: Experiment) -> BuiltPart:
    """Return what a connection of some job may use, or all of the fabric.

    All is built where the scenario says so, a manager may place jobs anywhere, or cables fail: paths around those are
    longer ones.
    """
    fabric = experiment.fabric
    if experiment.build == "all" or experiment.managed is not None or experiment.failures:
        return whole(fabric)
    hosts = {fabric.host_of_gpu[gpu] for job in experiment.jobs for gpu in job.gpus}
    return used_part(fabric, hosts, (pair for job in experiment.jobs for pair in _joined(job, fabric)))


def _joined(job: Job, fabric: Fabric) -> Iterator[tuple[str, str]]:
    """Ports that a connection of ``job`` may join: real programs open what they like between their hosts."""
    if job.external is None:
        return iter((flow.source, flow.target) for flow in job.flows)
    hosts = {fabric.host_of_gpu[gpu] for gpu in job.gpus}
    ports = [port for port, record in fabric.ports.items() if record.host in hosts]
    of_other_hosts = (
        pair for pair in permutations(ports, 2) if fabric.ports[pair[0]].host != fabric.ports[pair[1]].host
    )
    return (pair for pair in of_other_hosts if _are_joined(pair, fabric))


def _are_joined(pair: tuple[str, str], fabric: Fabric) -> bool:
    try:
        return bool(fabric.candidate_paths(*pair))
    except ValueError:  # rails that do not reach each other
        return False
