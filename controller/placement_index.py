"""Fabric and jobs as numbers: what does not change while a job runs, kept as arrays.

Links are numbered; a flow's candidate paths are a table of link numbers. Flows of a job are put
into batches of flows that share no candidate link, so that a batch can be placed at once with the
same result as one flow after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.ecmp import five_tuple_of
from controller.intensity import Profile, compute_before_communication, profile_from_times
from controller.port_probing import HashTree, hash_tree, hashed_index
from topologies.fabric import Fabric, Path
from topologies.switch_paths import SwitchPaths
from workloads.job import Flow, Job, Transfer

Numbers = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bundle:
    """The ways between two switches: ``paths`` by name, ``links`` by number (a row per path), ``tree`` for ECMP."""

    paths: tuple[Path, ...]
    links: Numbers
    tree: HashTree


class FabricIndex:
    """Links of a fabric by number: network links first, then those between PCIe switch and NIC.

    ``absent`` is a link that pads short paths: never loaded. ``closed`` pads short lists of candidates:
    infinitely loaded.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        names = [link.name for link in fabric.network_links]
        for nic in fabric.nics.values():
            names += [f"{nic.pcie_switch}->{nic.name}", f"{nic.name}->{nic.pcie_switch}"]
        self.number = {name: number for number, name in enumerate(names)}
        self.absent, self.closed = len(names), len(names) + 1
        self.capacity: Floats = np.array([*(fabric.links[name].capacity for name in names), np.inf, np.inf])
        self._switch_paths = SwitchPaths(fabric)
        self._bundles: dict[tuple[str, str], Bundle] = {}

    def no_load(self) -> Floats:
        """A load of 0 on every link, for :meth:`JobIndex.batches` to be placed on."""
        load = np.zeros(self.closed + 1)
        load[self.closed] = np.inf
        return load

    def bundle(self, flow: Flow) -> Bundle:
        """The ways between the switches of the flow's two ports; ``KeyError`` for an unknown port."""
        ports = self.fabric.ports
        key = (ports[flow.source].switch, ports[flow.target].switch)
        if key not in self._bundles:
            paths = self._switch_paths.between(*key)
            numbers = np.array([[self.number[link] for link in path] for path in paths], np.intp)
            self._bundles[key] = Bundle(paths, numbers, hash_tree(self.fabric, paths))
        return self._bundles[key]

    def pcie_links(self, flow: Flow) -> tuple[int, int]:
        """Numbers of the links from PCIe switch to NIC at the source and back at the target."""
        nics, ports = self.fabric.nics, self.fabric.ports
        source, target = nics[ports[flow.source].nic], nics[ports[flow.target].nic]
        return (
            self.number[f"{source.pcie_switch}->{source.name}"],
            self.number[f"{target.name}->{target.pcie_switch}"],
        )

    def bits(self, links: Numbers) -> int:
        """The set ``links`` as the bits of one whole number."""
        member = np.zeros(self.closed + 1, np.uint8)
        member[links] = 1
        member[self.absent :] = 0
        return int.from_bytes(np.packbits(member).tobytes(), "big")


@dataclass(frozen=True, eq=False)
class Batch:
    """Flows (positions in the job) that share no candidate link; ``candidates``: [hop, flow, candidate] -> link."""

    flows: Numbers
    candidates: Numbers


@dataclass(frozen=True, eq=False)
class Sizes:
    """Bytes moved in an iteration or a phase of it: flow positions and bytes, in the order in which they add up."""

    flows: Numbers
    bytes: Floats

    def bottleneck_s(self, links: Numbers, capacity: Floats) -> float:
        """Seconds the most loaded link needs; ``links``: [hop, flow] -> link."""
        if not len(self.flows):
            return 0.0
        used = links[:, self.flows]
        total = np.bincount(used.T.ravel(), np.repeat(self.bytes, len(links)))
        return float((8 * total[used] / capacity[used]).max())


class JobIndex:
    """A job on an indexed fabric: its flows, their candidates, and what they move."""

    def __init__(self, job: Job, index: FabricIndex) -> None:
        self.job, self.index = job, index
        fabric, number = index.fabric, index.number
        flows = job.flows
        self.ends = [(fabric.uplink(flow.source).name, fabric.uplink(flow.target).reverse) for flow in flows]
        self.bundles = [index.bundle(flow) for flow in flows]
        self.host_links: Numbers = np.array([[number[end] for end in ends] for ends in self.ends], np.intp)
        self.host_links = self.host_links.reshape(-1, 2).T
        self.bytes: Floats = np.array([flow.bytes for flow in flows], float)
        self.sent_bytes = sum(flow.bytes for flow in flows)
        self.pcie: Numbers = np.array(
            [link for flow in flows if flow.bytes > 0 for link in index.pcie_links(flow)], np.intp
        )
        position = {flow.id: place for place, flow in enumerate(flows)}
        self.total = Sizes(np.arange(len(flows)), self.bytes)
        self.phases = [self._sizes(phase.transfers, position) for phase in job.phases]
        self.lead_s = compute_before_communication(job)
        self.candidates = self._candidates()
        self.batches = [Batch(rows, self.candidates[:, rows]) for rows in self._independent()]
        self.touched = self._touched()
        self.alone = self.profile(self.host_links)

    def profile(self, links: Numbers) -> Profile:
        """The declared profile over ``links``: [hop, flow] -> link; the same as that of :mod:`controller.intensity`."""
        capacity = self.index.capacity
        total_s = self.total.bottleneck_s(links, capacity)
        phases_s = [total_s if sizes is self.total else sizes.bottleneck_s(links, capacity) for sizes in self.phases]
        return profile_from_times(self.job, total_s, phases_s, self.sent_bytes, self.lead_s)

    def links_of(self, choice: Numbers) -> Numbers:
        """[hop, flow] -> link, for ``choice``: flow -> candidate."""
        return self.candidates[:, np.arange(len(choice)), choice]

    def hashed_choice(self, seed: int) -> Numbers:
        """Flow -> candidate, as ECMP with ``seed`` chooses."""
        fabric, flows = self.index.fabric, self.job.flows
        return np.array(
            [
                hashed_index(bundle.tree, five_tuple_of(fabric, flow), seed)
                for flow, bundle in zip(flows, self.bundles, strict=True)
            ],
            np.intp,
        )

    def path(self, flow: int, candidate: int) -> Path:
        """A candidate path of the flow at position ``flow``, by name."""
        up, down = self.ends[flow]
        return (up, *self.bundles[flow].paths[candidate], down)

    def _sizes(self, transfers: Sequence[Transfer], position: dict[str, int]) -> Sizes:
        flows = np.array([position[transfer.flow] for transfer in transfers], np.intp)
        sizes = np.array([transfer.bytes for transfer in transfers], float)
        same = np.array_equal(flows, self.total.flows) and np.array_equal(sizes, self.total.bytes)
        return self.total if same else Sizes(flows, sizes)

    def _candidates(self) -> Numbers:
        count = max((len(bundle.paths) for bundle in self.bundles), default=1)
        hops = 2 + max((bundle.links.shape[1] for bundle in self.bundles), default=0)
        table = np.full((hops, len(self.bundles), count), self.index.absent, np.intp)
        table[0] = self.host_links[0][:, None]
        for bundle, rows in _grouped(self.bundles):
            paths, between = bundle.links.shape
            table[1 : 1 + between, rows, :paths] = bundle.links.T[:, None, :]
            table[1 + between, rows] = self.host_links[1][rows][:, None]
            table[0, rows, paths:] = self.index.closed
        return table

    def _independent(self) -> Iterable[Numbers]:
        """Positions of flows, batch by batch: a flow comes after every earlier one with which it shares a link."""
        ports, last = self.index.fabric.ports, dict[object, int]()
        batch_of = np.zeros(len(self.bundles), np.intp)
        for place, (flow, bundle) in enumerate(zip(self.job.flows, self.bundles, strict=True)):
            keys: list[object] = [("up", flow.source), ("down", flow.target)]
            if bundle.links.shape[1]:
                keys += [("out", ports[flow.source].switch), ("in", ports[flow.target].switch)]
            if bundle.links.shape[1] > 2:
                keys.append("between")  # beyond two hops the ways of any two flows may meet
            found = max(last.get(key, -1) for key in keys) + 1
            last.update(dict.fromkeys(keys, found))
            batch_of[place] = found
        order = np.argsort(batch_of, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(batch_of[order])) + 1) if len(order) else ()

    def _touched(self) -> Numbers:
        member = np.zeros(self.index.closed + 1, bool)
        member[self.candidates] = True
        member[self.index.absent :] = False
        return np.flatnonzero(member)


def _grouped(bundles: Sequence[Bundle]) -> list[tuple[Bundle, Numbers]]:
    rows: dict[int, list[int]] = {}
    for place, bundle in enumerate(bundles):
        rows.setdefault(id(bundle), []).append(place)
    return [(bundles[places[0]], np.array(places, np.intp)) for places in rows.values()]
