"""Samples a running network: bytes and backlog of every link and level, CPU time, drops."""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass
from typing import Final

from testbed.engines.emulation.probes.cpu_counters import cpu_share, read_cpu_times
from testbed.engines.emulation.probes.link_watch import LinkEvents, LinkWatch
from testbed.engines.emulation.probes.netlink import CounterSocket
from testbed.engines.emulation.probes.order_probe import OrderedLink, OrderProbe
from testbed.engines.emulation.probes.pace import Pace
from testbed.engines.emulation.probes.queue_table import Move, Moves, QueueTable
from testbed.engines.emulation.probes.queue_watch import QueueWatch, WatchedLink
from testbed.engines.emulation.probes.rate_probe import ProbedLink, RateProbe
from testbed.experiment.experiment import Scale
from testbed.fidelity.interference import Second
from testbed.results.record import LinkRow
from topologies.addressing import interface_name
from topologies.fabric import Link
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.system import network_namespace_of
from topologies.shaping import ETHERNET_HEADER, LEAF_HANDLE, payload_share

MOST_OF_TIME: Final = 0.03
"""Share of a core that reading the queues may take: above it all of them are read less often."""
PIECE_S: Final = 0.001
"""Work after which urgent tasks have their turn: to give them one costs as much as to read a small namespace."""


@dataclass(frozen=True, slots=True)
class _Queue:
    link: str
    level: int


class Sampler:
    """Reads counters when asked; ``links``, ``seconds``, ``probe``, ``order``, ``queues`` and ``cables`` collect it.

    ``against_tc``: packets by which what programs in the kernel count of a queue differs from what ``tc`` says of it a
    moment before -> how often.

    Sizes in ``links`` are payload in the scenario's units, times undilated from ``origin``.
    """

    def __init__(self, network: EmulatedNetwork, scale: Scale, origin: float, unprobed: Collection[str] = ()) -> None:
        """``unprobed``: links whose rate changes, so that nothing is said of it."""
        self._scale = scale
        self._origin = origin
        self._unprobed = unprobed
        self._sockets: list[CounterSocket] = []
        self._queues: list[_Queue] = []
        self._places: list[list[tuple[int, int]]] = []
        self._probed: dict[str, ProbedLink] = {}
        self._ordered: dict[str, OrderedLink] = {}
        self._watched: dict[str, WatchedLink] = {}
        self._events: list[tuple[LinkEvents, dict[int, str]]] = []
        for host, pid in network.namespaces():
            if pid is None:
                self._open(network, host)
            else:
                with network_namespace_of(pid):
                    self._open(network, host)
        self._exact = network.link_queues
        self.against_tc: Counter[int] = Counter()
        self._counted = frozenset(link.name for link in network.fabric.network_links)
        self.links: list[LinkRow] = []
        self.seconds: list[Second] = []
        self.queue_drops = 0
        self._table = QueueTable(self._places)
        self._share = payload_share(scale.mtu)
        self._cpu = read_cpu_times()
        self._time = self._read = origin
        self._pace = Pace(MOST_OF_TIME)
        self.probe = RateProbe(self._probed, scale.mtu)
        self.order = OrderProbe(self._ordered, scale.mtu)
        self.queues = QueueWatch(self._watched)
        self.cables = LinkWatch(self._events)
        self._drops = self._interface_drops()
        self._first = True
        self.sample(origin)  # what was counted before is not the run's
        self.seconds.clear()

    def _open(self, network: EmulatedNetwork, host: str) -> None:
        self._sockets.append(CounterSocket())
        places: list[tuple[int, int]] = []
        links: dict[int, str] = {}
        for link in network.links_of_namespace(host):
            index = socket.if_nametoindex(interface_name(network.fabric, link))
            self._watch(network, link, index)
            links[index] = link.name
            for level in range(network.settings.levels):
                places.append((index, LEAF_HANDLE + level))
                self._queues.append(_Queue(link.name, level))
        self._places.append(places)
        self._events.append((LinkEvents(), links))

    def _watch(self, network: EmulatedNetwork, link: Link, index: int) -> None:
        """Have the interface ``index``, which sends on ``link``, looked at closely."""
        counters, shaping = self._sockets[-1], network.shaping_of(link)
        htb = shaping.discipline == "htb"
        classes = {(0x10010 if htb else 0x20001) + level: level for level in range(shaping.levels)}
        self._watched[link.name] = WatchedLink(counters, index, (0x10000,) if htb else (0x10000, 0x20000))
        if link.name in self._unprobed:
            return
        self._probed[link.name] = ProbedLink(counters, index, shaping.wire_rate)
        self._ordered[link.name] = OrderedLink(counters, index, classes, shaping.wire_rate, shaping.burst)

    def sample(self, now: float, *, whole: bool = False) -> Second:
        """Take a sample at ``now`` (monotonic clock); return where the CPU time went since the last."""
        for _ in self.sampling(now, whole=whole):
            pass
        return self.seconds[-1]

    def sampling(self, now: float, *, whole: bool = False) -> Iterator[None]:
        """Take a sample in pieces of a few milliseconds; urgent tasks run in between.

        Queues are read less often than CPU time where reading them all would take more than ``MOST_OF_TIME``, unless
        the sample is to be ``whole``.
        """
        duration = max(now - self._time, 1e-6)
        suspect: list[str] = []
        if whole or self._pace.is_due(now):
            suspect = yield from self._reading(now)
        yield from self.queues.looking(now - self._origin, suspect)
        self._account_cpu(now, duration)

    def _reading(self, now: float) -> Generator[None, None, list[str]]:
        """Read the counters of all queues; return the links that lack one they had."""
        spent, dumps, begun = 0.0, [], time.thread_time()
        for counters in self._sockets:
            dumps.append(counters.queue_dump())
            piece = time.thread_time() - begun
            if piece >= PIECE_S:
                spent += piece
                yield
                begun = time.thread_time()
        suspect = self._note(now, self._table.read(dumps))
        spent += time.thread_time() - begun
        if not self._first:  # the first one finds out where everything is
            self._pace.spent(now, spent)
        self._first, self._read = False, now
        yield
        return suspect

    def _note(self, now: float, found: Moves) -> list[str]:
        """Take note of what queues sent, dropped and hold; return the links that lack a queue they had."""
        waiting: dict[str, int] = defaultdict(int)
        sent: dict[str, dict[int, int]] = defaultdict(dict)
        for number in found.made_anew:
            self.queues.note_reset(self._queues[number].link, self._read - self._origin, now - self._origin)
        for move in found.moves:
            queue = self._queues[move.queue]
            self._add_row(now, queue, move)
            waiting[queue.link] += move.backlog
            if move.bytes:
                sent[queue.link][queue.level] = move.bytes
        self.probe.focus(waiting)
        self.order.focus(sent)
        return sorted({self._queues[number].link for number in found.missing})

    @property
    def read_s(self) -> float:
        """When the counters of queues were last read, in undilated seconds from ``origin``."""
        return (self._read - self._origin) / self._scale.time

    def _add_row(self, now: float, queue: _Queue, move: Move) -> None:
        self.queue_drops += max(0, move.drops)
        exact = self._exact.read(queue.link, queue.level) if queue.link in self._counted and self._exact else None
        if self._first:
            return
        if exact is not None and move.backlog:
            self.against_tc[round((exact.bytes - move.backlog) / (self._scale.mtu + ETHERNET_HEADER))] += 1
        self.links.append(
            LinkRow(
                time_s=(now - self._origin) / self._scale.time,
                link=queue.link,
                level=queue.level,
                bytes=self._scale.unscale_size(move.bytes * self._share),
                queued_bytes=self._scale.unscale_size((exact.bytes if exact else move.backlog) * self._share),
                drops=max(0, move.drops),
                longest_queue_bytes=self._scale.unscale_size((exact.longest_bytes if exact else 0) * self._share),
            )
        )

    def _account_cpu(self, now: float, duration: float) -> Second:
        cpu = read_cpu_times()
        second = cpu_share(self._cpu, cpu, now - self._origin, duration)
        self._cpu, self._time = cpu, now
        self.seconds.append(second)
        return second

    def other_drops(self) -> int:
        """Packets that interfaces dropped since the sampler was made, outside the emulated queues."""
        return self._interface_drops() - self._drops

    def _interface_drops(self) -> int:
        return sum(entry.drops for counters in self._sockets for entry in counters.interfaces())

    def close(self) -> None:
        """Close the counter sockets."""
        for counters in self._sockets:
            counters.close()
        self.cables.close()
