"""Whether a fabric or a job that came over the REST interface fits together. Pure.

What passes here has types already (:mod:`topologies.dataclass_json`). The rest of the controller may rely on names
that exist, numbers that addresses can hold, and cables with two ends; so no request ends in an internal error.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from controller.decision import Measured
from topologies.fabric import NETWORK_KINDS, Fabric, Link
from topologies.limits import HOSTS, PORTS_PER_HOST
from workloads.job import JOB_NAME, JOB_NAME_FORM, Flow, Job

LONGEST_NAME: Final = 200
MOST_SWITCHES: Final = 1 << 31
MOST_TCP_PORTS: Final = 1 << 16
MOST_S: Final = 1e15
"""Of a compute time: sums of longer ones are no numbers any more."""
_JOB: Final = re.compile(JOB_NAME.removesuffix("$") + "(@[0-9]+)?")
"""A job's name as in scenario files; a job that a manager has stopped continues as ``name@2``, ``name@3`` ..."""


def check_fabric(fabric: Fabric) -> None:
    """Raise ``ValueError`` with the place of the first contradiction."""
    for kind in ("hosts", "nics", "ports", "switches", "links"):
        _check_names(kind, getattr(fabric, kind))
    _check_references(fabric)
    _check_numbers(fabric)
    for link in fabric.links.values():
        _check_link(fabric, link)
    for port in fabric.ports.values():
        cables = [link.target for link in fabric.links_from.get(port.name, ())]
        _require(cables == [port.switch], f"fabric.ports.{port.name}: expected one link, to '{port.switch}'")


def check_job(job: Job) -> None:
    """Raise ``ValueError`` with the place of the first contradiction inside the job."""
    _check_name("job.name", job.name)
    _unique("job.flows", (flow.id for flow in job.flows))
    for index, flow in enumerate(job.flows):
        _check_flow(f"job.flows[{index}]", flow, job)
    for index, phase in enumerate(job.phases):
        place = f"job.phases[{index}]"
        times = 0 <= phase.compute_s <= MOST_S and 0 <= phase.overlap <= 1
        _require(times, f"{place}: expected compute_s 0 to {MOST_S:g}, overlap 0 to 1")
        _require(all(0 <= each < len(job.gpus) for each in phase.members), f"{place}.members: expected places of GPUs")
        awaited = all(0 <= each < index and job.phases[each].detached for each in phase.awaits)
        _require(awaited, f"{place}.awaits: expected detached phases before it")
        for transfer in phase.transfers:
            for name in (transfer.flow, transfer.after):
                _require(name is None or name in job.flow_by_id, f"{place}: transfer names unknown flow '{name}'")
            _require(transfer.bytes >= 0 and transfer.lead >= 0, f"{place}: expected bytes and lead >= 0")
    numbers = (job.flops, job.start_s, job.jitter, *(straggler.factor for straggler in job.stragglers))
    _require(all(number >= 0 for number in numbers), "job: expected flops, start_s, jitter and factors >= 0")
    _require(job.iterations > 0, "job.iterations: expected 1 or more")
    _unique("job.gpus", job.gpus)


def check_job_name(name: str) -> None:
    """Raise ``ValueError`` unless a scenario, or a manager that continues one of its jobs, may give this name."""
    if not _JOB.fullmatch(name):
        raise ValueError(f"job.name is {name!a}, expected {JOB_NAME_FORM}")


def check_measured(measured: Measured) -> None:
    """Raise ``ValueError`` for a profile that no iteration can have."""
    _require(measured.flops >= 0 and measured.communication_s >= 0, "profile: expected flops, communication_s >= 0")
    _require(measured.iteration_s > 0, "profile.iteration_s: expected a positive number")


def _check_flow(place: str, flow: Flow, job: Job) -> None:
    _check_name(f"{place}.id", flow.id)
    _require(flow.job == job.name, f"{place}.job: '{flow.job}' is not the name of the job")
    _require(flow.source != flow.target, f"{place}: source and target are the same port '{flow.source}'")
    _require(flow.bytes >= 0, f"{place}.bytes: expected 0 or more")
    for number in (flow.source_port, flow.target_port):
        _require(0 < number < MOST_TCP_PORTS, f"{place}: expected TCP ports from 1 to {MOST_TCP_PORTS - 1}")


def _check_names(kind: str, named: Mapping[str, Any]) -> None:
    for key, value in named.items():
        _check_name(f"fabric.{kind}", key)
        _require(value.name == key, f"fabric.{kind}.{key}: its name is '{value.name}'")


def _check_references(fabric: Fabric) -> None:
    for nic in fabric.nics.values():
        _known(f"fabric.nics.{nic.name}", (("host", nic.host, fabric.hosts),))
        _require(nic.name in fabric.hosts[nic.host].nics, f"fabric.nics.{nic.name}: host '{nic.host}' lacks it")
    for port in fabric.ports.values():
        place = f"fabric.ports.{port.name}"
        kinds = (
            ("host", port.host, fabric.hosts),
            ("nic", port.nic, fabric.nics),
            ("switch", port.switch, fabric.switches),
        )
        _known(place, kinds)
        _require(fabric.nics[port.nic].host == port.host, f"{place}: nic '{port.nic}' is of another host")
        _require(port.name in fabric.nics[port.nic].ports, f"{place}: nic '{port.nic}' lacks it")
    for host in fabric.hosts.values():
        _known(f"fabric.hosts.{host.name}", (("nic", nic, fabric.nics) for nic in host.nics))
    for nic in fabric.nics.values():
        _known(f"fabric.nics.{nic.name}", (("port", port, fabric.ports) for port in nic.ports))
        _known(f"fabric.nics.{nic.name}", (("gpu", gpu, fabric.host_of_gpu) for gpu in nic.gpus))
        for gpu in nic.gpus:
            _require(fabric.host_of_gpu[gpu] == nic.host, f"fabric.nics.{nic.name}: gpu '{gpu}' is of another host")
        inside = (f"{nic.pcie_switch}->{nic.name}", f"{nic.name}->{nic.pcie_switch}")
        _known(f"fabric.nics.{nic.name}", (("link", name, fabric.links) for name in inside))
    for gpu, host_name in fabric.host_of_gpu.items():
        _require(gpu in fabric.nic_of_gpu, f"fabric.hosts.{host_name}: gpu '{gpu}' has no NIC, expected one")


def _check_numbers(fabric: Fabric) -> None:
    _unique("fabric.hosts: indices", (host.index for host in fabric.hosts.values()))
    _unique("fabric.switches: tier and index", ((switch.tier, switch.index) for switch in fabric.switches.values()))
    _unique("fabric.hosts: gpus", fabric.gpus)
    for host in fabric.hosts.values():
        place = f"fabric.hosts.{host.name}"
        _require(0 <= host.index < HOSTS, f"{place}.index: expected 0 to {HOSTS - 1}")
        ports = [port for nic in host.nics for port in fabric.nics[nic].ports]
        _unique(f"{place}: ports", ports)
        _require(len(ports) <= PORTS_PER_HOST, f"{place}: {len(ports)} ports, expected {PORTS_PER_HOST} at most")
    for switch in fabric.switches.values():
        _require(0 <= switch.index < MOST_SWITCHES, f"fabric.switches.{switch.name}.index: expected 0 or more")


def _check_link(fabric: Fabric, link: Link) -> None:
    place = f"fabric.links.{link.name}"
    back = fabric.links.get(link.reverse)
    if back is None:
        raise ValueError(f"{place}: reverse '{link.reverse}' is no link")
    ends = (back.source, back.target, back.reverse, back.kind)
    _require(ends == (link.target, link.source, link.name, link.kind), f"{place}: '{back.name}' is not its reverse")
    _require(link.capacity > 0, f"{place}.capacity: expected a positive number")
    if link.kind in NETWORK_KINDS:
        for end in (link.source, link.target):
            _require(end in fabric.ports or end in fabric.switches, f"{place}: '{end}' is no port and no switch")


def _check_name(place: str, name: str) -> None:
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValueError(
            f"{place}: {name[:LONGEST_NAME]!a} is no name, expected 1 to {LONGEST_NAME} characters in print"
        )


def _known(place: str, references: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
    for kind, name, known in references:
        _require(name in known, f"{place}: {kind} '{name}' is not in the fabric")


def _unique(what: str, items: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for item in items:
        _require(item not in seen, f"{what}: {item} is there twice")
        seen.add(item)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
