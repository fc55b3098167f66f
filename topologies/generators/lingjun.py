"""The hosts of the cluster that Crux studied, from ``topo.csv`` of ``alibaba/alibaba-lingjun-dataset-2023``.

Columns ``ip,DSW,PSW,ASW``, a row per host: its core, aggregation and ToR *group*. ASW labels repeat
under other PSWs, so a ToR is a (DSW, PSW, ASW). The file has no switch counts, speeds or wiring.
Assumed here: an ASW is one ToR; a PSW is a group of aggregation switches, each cabled to every ToR
of the group; a DSW is a group of cores, each cabled to every aggregation switch below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from topologies.fabric import Fabric, IntraHost, PcieQueues
from topologies.hosts import (
    NVLINK_RATE,
    PCIE_RATE,
    FabricBuilder,
    HostShape,
    require_counts,
    require_rates,
)
from topologies.table import TraceError, read_rows

COLUMNS: Final = ("ip", "DSW", "PSW", "ASW")


@dataclass(frozen=True, slots=True)
class LingjunHost:
    """A row of ``topo.csv``: a host by its (hashed) address, and the labels of its switches."""

    ip: str
    dsw: str
    psw: str
    asw: str

    @property
    def tor(self) -> tuple[str, str, str]:
        """What makes its ToR unique."""
        return self.dsw, self.psw, self.asw


def read_topology(path: Path) -> tuple[LingjunHost, ...]:
    """Read ``topo.csv``: hosts ToR by ToR, in the order of the labels' numbers, and of the file within a ToR.

    Host ``i`` of the result is ``h<i>`` of the fabric. Raises :class:`TraceError` for a damaged
    file, a blank cell, and a host listed twice.
    """
    lines: dict[str, int] = {}
    hosts: list[LingjunHost] = []
    for row in read_rows(path, COLUMNS, Counter()):
        cells = [row.text(column) for column in COLUMNS]
        if "" in cells:
            row.fail(f"{COLUMNS[cells.index('')]} is empty", "a host and its three switches")
        if cells[0] in lines:
            row.fail(f"host {cells[0]} is listed in line {lines[cells[0]]} already", "each host once")
        lines[cells[0]] = row.line
        hosts.append(LingjunHost(*cells))
    if not hosts:
        raise TraceError(str(path), None, "there are no hosts", "a row per host")
    return tuple(sorted(hosts, key=lambda host: [_in_order(label) for label in host.tor]))


def host_names(hosts: Sequence[LingjunHost]) -> dict[str, str]:
    """Return address -> name of the host in the fabric."""
    return {host.ip: f"h{index}" for index, host in enumerate(hosts)}


def lingjun(
    hosts: Sequence[LingjunHost],
    *,
    gpus_per_host: int = 8,
    nics_per_host: int = 4,
    ports_per_nic: int = 2,
    aggregations_per_group: int = 8,
    cores_per_group: int = 8,
    port_rate: float = 100e9,
    fabric_rate: float = 100e9,
    core_rate: float | None = None,
    parallel_links: int = 8,
    bonded: bool = True,
    pcie_rate: float = PCIE_RATE,
    nvlink_rate: float = NVLINK_RATE,
    intra_host: IntraHost = "instant",
    pcie_queues: PcieQueues = "ideal",
) -> Fabric:
    """Return the fabric of ``hosts``, as :func:`read_topology` gives them; ToRs, groups and cores in their order.

    Hosts are those of the Crux testbed (8 GPUs, 4 NICs of two ports); rates are bit/s. The default of
    8 aggregation switches with 8 cables each makes a ToR of 8 hosts 1:1. ``bonded`` makes the ports
    of a NIC one port, and parallel cables one cable, of the summed rate. One switch per label is
    ``aggregations_per_group=1, cores_per_group=1``. Raises ``ValueError`` naming the parameter that
    makes the fabric impossible.
    """
    require_counts(aggregations_per_group=aggregations_per_group, cores_per_group=cores_per_group)
    require_counts(parallel_links=parallel_links, ports_per_nic=ports_per_nic)
    above = fabric_rate if core_rate is None else core_rate
    require_rates(fabric_rate=fabric_rate, core_rate=above)
    ports, rate = (1, port_rate * ports_per_nic) if bonded else (ports_per_nic, port_rate)
    rates = (rate, pcie_rate, nvlink_rate)
    shape = HostShape(len(hosts), gpus_per_host, nics_per_host, ports, *rates, intra_host, pcie_queues)
    tors = list(dict.fromkeys(host.tor for host in hosts))
    groups = list(dict.fromkeys(tor[:2] for tor in tors))
    tops = list(dict.fromkeys(group[0] for group in groups))
    builder = FabricBuilder()
    tor_of = dict(zip(tors, builder.add_switches("tor", len(tors)), strict=True))
    aggregations = builder.add_switches("agg", len(groups) * aggregations_per_group)
    cores = builder.add_switches("core", len(tops) * cores_per_group)
    for index, host in enumerate(hosts):
        builder.add_host(shape, index, (tor_of[host.tor],) * ports)
    cables, factor = (1, parallel_links) if bonded else (parallel_links, 1)
    for number, group in enumerate(groups):
        over = aggregations[number * aggregations_per_group : (number + 1) * aggregations_per_group]
        builder.mesh([tor_of[tor] for tor in tors if tor[:2] == group], over, "tor-agg", fabric_rate * factor, cables)
        first = tops.index(group[0]) * cores_per_group
        builder.mesh(over, cores[first : first + cores_per_group], "agg-core", above * factor, cables)
    size = f"{len(tors)} ToRs, {len(aggregations)} aggregation in {len(groups)} groups, {len(cores)} core"
    return builder.build("lingjun", f"{len(hosts)} hosts x {gpus_per_host} GPUs, {size}", shape)


def _in_order(label: str) -> tuple[str, int]:
    """S2 comes before S10."""
    number = re.search(r"\d{1,18}$", label)
    return (label[: number.start()], int(number.group())) if number else (label, -1)
