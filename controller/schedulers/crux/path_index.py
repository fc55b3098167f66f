"""Fabric and jobs as numbers: what does not change while a job runs, kept as arrays.

Links are numbered; a flow's candidate paths are a table of link numbers. Flows of a job are put
into batches of flows that share no candidate link, so that a batch can be placed at once with the
same result as one flow after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from controller.ecmp_hash import five_tuple_of
from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.intensity import Profile, compute_before_communication, profile_from_times
from controller.schedulers.crux.path_loops import Flags, Floats, Numbers, PathLoops
from controller.schedulers.crux.source_ports import HashTree, hash_tree, hashed_index
from topologies.fabric import Fabric, Link, Path, SwitchPaths
from workloads.analysis import bottleneck_time
from workloads.job import Job, Transfer
from workloads.phases import once_per_transfers

__all__ = ["FabricIndex", "Floats", "JobIndex", "Numbers"]


@dataclass(frozen=True, eq=False)
class Bundle:
    """The paths between two switches of ``fabric``: ``paths`` by name, ``links`` by number (a row per path).

    ``unlike``: whether they differ in capacity at some hop.
    """

    fabric: Fabric
    paths: tuple[Path, ...]
    links: Numbers
    unlike: bool

    @cached_property
    def place(self) -> dict[Path, int]:
        """Path -> its place among ``paths``."""
        return {path: place for place, path in enumerate(self.paths)}

    @cached_property
    def tree(self) -> HashTree:
        """The choices that ECMP makes."""
        return hash_tree(self.fabric, self.paths)


@dataclass(frozen=True, eq=False)
class PortLinks:
    """Per port number: the links to and from its switch, by name and number, that switch, and the PCIe links behind."""

    up_names: tuple[str, ...]
    down_names: tuple[str, ...]
    up: Numbers
    down: Numbers
    switch: Numbers
    from_pcie: Numbers
    to_pcie: Numbers

    @classmethod
    def of(cls, fabric: Fabric, number: Mapping[str, int], switch_number: Mapping[str, int]) -> PortLinks:
        """Look up every port of ``fabric``."""
        ups = [fabric.uplink(port) for port in fabric.ports]
        nics = [fabric.nics[port.nic] for port in fabric.ports.values()]
        return cls(
            up_names=tuple(up.name for up in ups),
            down_names=tuple(up.reverse for up in ups),
            up=np.array([number[up.name] for up in ups], np.intp),
            down=np.array([number[up.reverse] for up in ups], np.intp),
            switch=np.array([switch_number[up.target] for up in ups], np.intp),
            from_pcie=np.array([number[f"{nic.pcie_switch}->{nic.name}"] for nic in nics], np.intp),
            to_pcie=np.array([number[f"{nic.name}->{nic.pcie_switch}"] for nic in nics], np.intp),
        )


class FabricIndex:
    """Links of a fabric by number: network links first, then those between PCIe switch and NIC or root complex.

    ``absent`` is a link that pads short paths: never loaded. ``closed`` pads short lists of candidates:
    infinitely loaded. ``loops``: those of :mod:`.path_loops`, if an engine has compiled them; ``room`` is theirs.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        names = [link.name for link in fabric.network_links]
        for nic in fabric.nics.values():
            names += [f"{nic.pcie_switch}->{nic.name}", f"{nic.name}->{nic.pcie_switch}"]
        if fabric.intra_host == "pcie":
            for nic in fabric.nics.values():
                names += [f"{nic.pcie_switch}->{nic.host}rc", f"{nic.host}rc->{nic.pcie_switch}"]
        self.number = {name: number for number, name in enumerate(names)}
        self.absent, self.closed = len(names), len(names) + 1
        self.capacity: Floats = np.array([*(fabric.links[name].capacity for name in names), np.inf, np.inf])
        self.switch_number = {switch: number for number, switch in enumerate(fabric.switches)}
        self.port_number = {port: number for number, port in enumerate(fabric.ports)}
        self.ports = PortLinks.of(fabric, self.number, self.switch_number)
        self.ends = {port.switch for port in fabric.ports.values()}
        """Switches with ports."""
        self.layered = not any(link.source in self.ends and link.target in self.ends for link in fabric.network_links)
        """Whether no switch with ports is between two others on a path."""
        self.meeting_place = self._meeting_places()
        """Network link -> a number of the switch at its end next to hosts: one for links that leave it, another one."""
        self._switch_names = list(fabric.switches)
        self._switch_paths = SwitchPaths(fabric.name, fabric.switches, fabric.links_from)
        self._bundles: dict[tuple[int, int], Bundle] = {}
        self._jobs: WeakValueDictionary[int, JobIndex] = WeakValueDictionary()
        self.loops: PathLoops | None = None
        self.room: Floats = np.zeros(len(self.capacity))

    @classmethod
    def of(cls, fabric: Fabric) -> FabricIndex:
        """Return the index of ``fabric``, one for all who use it at the same time."""
        known = _INDICES.get(id(fabric))
        if known is None:  # an index holds its fabric, so no other one has that identity while it is known
            known = _INDICES[id(fabric)] = cls(fabric)
        return known

    def job(self, job: Job) -> JobIndex:
        """Return ``job`` on this fabric, one for all who use it at the same time."""
        known = self._jobs.get(id(job))
        if known is None:
            known = self._jobs[id(job)] = JobIndex(job, self)
        return known

    def no_load(self) -> Floats:
        """A load of 0 on every link, for :meth:`JobIndex.batches` to be placed on."""
        load = np.zeros(self.closed + 1)
        load[self.closed] = np.inf
        return load

    def _meeting_places(self) -> Numbers:
        number, ends = self.switch_number, self.ends

        def place(link: Link) -> int:
            if link.source not in number:
                return 2 * number[link.target]
            if link.target not in number:
                return 2 * number[link.source] + 1
            into_end = link.source not in ends and link.target in ends
            return 2 * number[link.target] + 1 if into_end else 2 * number[link.source]

        return np.array([place(link) for link in self.fabric.network_links], np.intp)

    def bundle(self, source: int, target: int) -> Bundle:
        """The paths between two switches, by number."""
        key = (source, target)
        if key not in self._bundles:
            paths = self._switch_paths.between(self._switch_names[source], self._switch_names[target])
            numbers = np.array([[self.number[link] for link in path] for path in paths], np.intp)
            rates = self.capacity[numbers]
            self._bundles[key] = Bundle(self.fabric, paths, numbers, bool((rates != rates[:1]).any()))
        return self._bundles[key]


_INDICES: WeakValueDictionary[int, FabricIndex] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class FlowBatch:
    """Flows (positions in the job) that share no candidate link; ``candidates``: [hop, flow, candidate] -> link.

    ``unlike``: places among ``flows`` of those whose candidates differ in capacity at some hop.
    """

    flows: Numbers
    candidates: Numbers
    unlike: Numbers


@dataclass(frozen=True, eq=False)
class Sizes:
    """Bytes moved in an iteration or a phase of it: flow positions and bytes, in the order in which they add up."""

    flows: Numbers
    bytes: Floats

    def bottleneck_s(self, links: Numbers, index: FabricIndex) -> float:
        """Seconds the most loaded link needs; ``links``: [hop, flow] -> link."""
        if not len(self.flows):
            return 0.0
        capacity = index.capacity
        if index.loops is not None:
            return index.loops.most_loaded_s(links, self.flows, self.bytes, capacity, index.room)
        used, room = links[:, self.flows], index.room
        np.add.at(room, used.T.ravel(), np.repeat(self.bytes, len(links)))
        most_s = float((8 * room[used] / capacity[used]).max())
        room[used] = 0.0
        return most_s


class JobIndex:
    """A job on an indexed fabric: its flows, their candidates, and what they move."""

    def __init__(self, job: Job, index: FabricIndex) -> None:
        self.job, self.index = job, index
        flows, ports = job.flows, index.ports
        self._sources: Numbers = np.array([index.port_number[flow.source] for flow in flows], np.intp)
        self._targets: Numbers = np.array([index.port_number[flow.target] for flow in flows], np.intp)
        self.host_links: Numbers = np.stack((ports.up[self._sources], ports.down[self._targets]))
        sizes = [flow.bytes for flow in flows]
        self.bytes: Floats = np.array(sizes, float)
        self.sent_bytes = sum(sizes)
        self._inside_s = [bottleneck_time(dict(phase.inside), index.fabric) for phase in job.phases]
        self._inside_total_s = bottleneck_time(job.inside, index.fabric)
        position = {flow.id: place for place, flow in enumerate(flows)}
        self.total = Sizes(np.arange(len(flows)), self.bytes)
        sizes_of = once_per_transfers(lambda transfers: self._sizes(transfers, position))
        self.phases = [sizes_of(phase) for phase in job.phases]
        self.lead_s = compute_before_communication(job)
        self.alone = self.profile(self.host_links)

    @cached_property
    def pcie(self) -> Numbers:
        """The links inside hosts that the job sends over."""
        ports, sends, number = self.index.ports, self.bytes > 0, self.index.number
        inside = [number[link] for link in self.job.inside if link in number]
        sides = ports.from_pcie[self._sources[sends]], ports.to_pcie[self._targets[sends]]
        return np.concatenate((*sides, np.array(inside, np.intp)))

    @cached_property
    def touched(self) -> Numbers:
        """The candidate links of all flows."""
        member = np.zeros(self.index.closed + 1, bool)
        member[self.table] = True
        member[self.index.absent :] = False
        return np.flatnonzero(member)

    @cached_property
    def meeting_places(self) -> frozenset[int]:
        """Two jobs have one in common wherever they have a candidate link in common."""
        return frozenset(self.index.meeting_place[self.touched].tolist())

    @cached_property
    def bundles(self) -> list[Bundle]:
        """Flow -> the paths between the switches at its ends."""
        between, bundle_of = self._taken
        return [between[place] for place in bundle_of.tolist()]

    @cached_property
    def table(self) -> Numbers:
        """[hop, flow, candidate] -> link."""
        between, bundle_of = self._taken
        shapes = [bundle.links.shape for bundle in between]
        count = max((paths for paths, _ in shapes), default=1)
        hops = 2 + max((length for _, length in shapes), default=0)
        table = np.full((hops, len(self.bytes), count), self.index.absent, np.intp)
        table[0] = self.host_links[0][:, None]
        last = self.host_links[1]
        if len(set(shapes)) == 1:
            links = np.stack([bundle.links for bundle in between])
            table[1:-1], table[-1] = links[bundle_of].transpose(2, 0, 1), last[:, None]
            return table
        for shape in dict.fromkeys(shapes):
            alike = np.array([other == shape for other in shapes])
            links = np.stack([bundle.links for bundle in between if bundle.links.shape == shape])
            rows = np.flatnonzero(alike[bundle_of])
            paths, length = shape
            table[1 : 1 + length, rows, :paths] = links[(np.cumsum(alike) - 1)[bundle_of[rows]]].transpose(2, 0, 1)
            table[1 + length, rows] = last[rows, None]
            table[0, rows, paths:] = self.index.closed
        return table

    @cached_property
    def unlike(self) -> Flags:
        """Flow -> whether its candidates differ in capacity at some hop between the switches."""
        between, bundle_of = self._taken
        return np.array([bundle.unlike for bundle in between], bool)[bundle_of]

    @cached_property
    def batches(self) -> list[FlowBatch]:
        """All flows, batch by batch."""
        unlike = self.unlike
        return [FlowBatch(rows, self.table[:, rows], np.flatnonzero(unlike[rows])) for rows in self._independent()]

    @cached_property
    def pcie_bytes(self) -> tuple[Numbers, Floats]:
        """Links between PCIe switches and NICs, one entry for each flow and side, and the bytes over them."""
        ports = self.index.ports
        links = np.concatenate((ports.from_pcie[self._sources], ports.to_pcie[self._targets]))
        return links, np.concatenate((self.bytes, self.bytes))

    def profile(self, links: Numbers) -> Profile:
        """The declared profile over ``links`` ([hop, flow] -> link), the same as :mod:`.intensity` gives."""
        index = self.index
        total_s = self.total.bottleneck_s(links, index)
        spent_s = {id(self.total): total_s}
        for sizes in self.phases:
            if id(sizes) not in spent_s:
                spent_s[id(sizes)] = sizes.bottleneck_s(links, index)
        phases_s = [spent_s[id(sizes)] for sizes in self.phases]
        longest_s = [max(times) for times in zip(phases_s, self._inside_s, strict=True)]
        total_s = max(total_s, self._inside_total_s)
        return profile_from_times(self.job, total_s, longest_s, self.sent_bytes, self.lead_s, index.fabric)

    def links_of(self, choice: Numbers) -> Numbers:
        """[hop, flow] -> link, for ``choice``: flow -> candidate."""
        return np.ascontiguousarray(self.table[:, np.arange(len(choice)), choice])

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

    def choice_of(self, paths: Mapping[str, Path]) -> Numbers:
        """Flow -> candidate that has its path in ``paths``, -1 where that is none."""
        if isinstance(paths, ChosenPaths) and paths.job is self:
            return paths.choice
        names, found = self.index.ports, np.full(len(self.bytes), -1, np.intp)
        ends = zip(self._sources.tolist(), self._targets.tolist(), self.bundles, strict=True)
        for place, (flow, (source, target, bundle)) in enumerate(zip(self.job.flows, ends, strict=True)):
            path = paths.get(flow.id, ())
            if path[:1] == names.up_names[source : source + 1] and path[-1:] == names.down_names[target : target + 1]:
                found[place] = bundle.place.get(path[1:-1], -1)
        return found

    def paths(self, choice: Numbers) -> ChosenPaths:
        """Flow id -> path, for ``choice``: flow -> candidate."""
        return ChosenPaths(self, choice)

    def named_paths(self, choice: Numbers) -> dict[str, Path]:
        """Flow id -> path by name, for ``choice``: flow -> candidate."""
        names = self.index.ports
        ups, downs = names.up_names, names.down_names
        places = zip(self._sources.tolist(), self._targets.tolist(), self.bundles, choice.tolist(), strict=True)
        found = [(ups[source], *bundle.paths[taken], downs[target]) for source, target, bundle, taken in places]
        return {flow.id: path for flow, path in zip(self.job.flows, found, strict=True)}

    @cached_property
    def _taken(self) -> tuple[list[Bundle], Numbers]:
        """The bundles that the flows take, each once, and flow -> its place among them."""
        switch = self.index.ports.switch
        pairs = list(zip(switch[self._sources].tolist(), switch[self._targets].tolist(), strict=True))
        place = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        return [self.index.bundle(*pair) for pair in place], np.array([place[pair] for pair in pairs], np.intp)

    def _sizes(self, transfers: Sequence[Transfer], position: dict[str, int]) -> Sizes:
        flows = np.array([position[transfer.flow] for transfer in transfers], np.intp)
        sizes = np.array([transfer.bytes for transfer in transfers], float)
        same = np.array_equal(flows, self.total.flows) and np.array_equal(sizes, self.total.bytes)
        return self.total if same else Sizes(flows, sizes)

    def _independent(self) -> list[Numbers]:
        """Positions of flows, batch by batch: a flow comes after every earlier one with which it shares a link."""
        last = dict[int, int]()
        batches = list[list[int]]()
        for flow, keys in enumerate(self._shared_keys()):
            turn = 1 + max(last.get(key, -1) for key in keys)
            last.update(dict.fromkeys(keys, turn))
            if turn == len(batches):
                batches.append([])
            batches[turn].append(flow)
        return [np.array(batch, np.intp) for batch in batches]

    def _shared_keys(self) -> Iterable[tuple[int, ...]]:
        """Flow -> numbers of which it has one in common with every flow that it may share a link with.

        Two flows share one if they have a port in common, or leave or enter the fabric at the same switch; beyond two
        hops between switches, or where ports are in the middle of paths, too, any two may share a link. Flows that all
        go from switch to switch share a switch where they share a port.
        """
        switch, ports, switches = self.index.ports.switch, len(self.index.port_number), len(self.index.switch_number)
        taken, bundle_of = self._taken
        hops = [bundle.links.shape[1] for bundle in taken]
        kinds = [2 * ports + switch[self._sources], 2 * ports + switches + switch[self._targets]]
        if 0 in hops:
            kinds += [self._sources, ports + self._targets]
        keys = zip(*(kind.tolist() for kind in kinds), strict=True)
        most = 2 if self.index.layered else 0
        if max(hops, default=0) <= most and 0 not in hops:
            return keys
        between, middle = [hops[bundle] for bundle in bundle_of.tolist()], (2 * (ports + switches),)
        return [own[2:] if hop == 0 else own + middle * (hop > most) for own, hop in zip(keys, between, strict=True)]
