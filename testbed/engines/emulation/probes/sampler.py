"""Samples a running network: bytes and backlog of every link and level, CPU time, drops."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.engines.emulation.probes.cpu_counters import cpu_share, read_cpu_times
from testbed.engines.emulation.probes.netlink import CounterSocket
from testbed.engines.emulation.probes.order_probe import OrderedLink, OrderProbe
from testbed.engines.emulation.probes.queue_watch import QueueWatch, WatchedLink
from testbed.engines.emulation.probes.rate_probe import ProbedLink, RateProbe
from testbed.experiment.experiment import Scale
from testbed.fidelity.interference import Second
from testbed.results.record import LinkRow
from topologies.addressing import interface_name
from topologies.fabric import Link
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.system import network_namespace_of
from topologies.shaping import LEAF_HANDLE, payload_share


@dataclass(frozen=True, slots=True)
class _Queue:
    link: str
    level: int


class Sampler:
    """Reads counters when asked; ``links``, ``seconds``, ``probe``, ``order`` and ``queues`` collect what it saw.

    Sizes in ``links`` are payload in the scenario's units, times undilated from ``origin``.
    """

    def __init__(self, network: EmulatedNetwork, scale: Scale, origin: float) -> None:
        self._scale = scale
        self._origin = origin
        self._sockets: list[CounterSocket] = []
        self._queues: list[dict[tuple[int, int], _Queue]] = []
        self._probed: dict[str, ProbedLink] = {}
        self._ordered: dict[str, OrderedLink] = {}
        self._watched: dict[str, WatchedLink] = {}
        for host, pid in network.namespaces():
            if pid is None:
                self._open(network, host)
            else:
                with network_namespace_of(pid):
                    self._open(network, host)
        self.links: list[LinkRow] = []
        self.seconds: list[Second] = []
        self.queue_drops = 0
        self._bytes: dict[_Queue, tuple[int, int]] = {}
        self._cpu = read_cpu_times()
        self._time = origin
        self.probe = RateProbe(self._probed, scale.mtu)
        self.order = OrderProbe(self._ordered, scale.mtu)
        self.queues = QueueWatch(self._watched)
        self._drops = self._interface_drops()
        self._first = True
        self.sample(origin)  # what was counted before is not the run's
        self.seconds.clear()

    def _open(self, network: EmulatedNetwork, host: str) -> None:
        self._sockets.append(CounterSocket())
        queues: dict[tuple[int, int], _Queue] = {}
        for link in network.links_of_namespace(host):
            index = socket.if_nametoindex(interface_name(network.fabric, link))
            self._watch(network, link, index)
            for level in range(network.settings.levels):
                queues[index, LEAF_HANDLE + level] = _Queue(link.name, level)
        self._queues.append(queues)

    def _watch(self, network: EmulatedNetwork, link: Link, index: int) -> None:
        """Have the interface ``index``, which sends on ``link``, looked at closely."""
        counters, shaping = self._sockets[-1], network.shaping_of(link)
        htb = shaping.discipline == "htb"
        classes = {(0x10010 if htb else 0x20001) + level: level for level in range(shaping.levels)}
        self._probed[link.name] = ProbedLink(counters, index, shaping.wire_rate)
        self._ordered[link.name] = OrderedLink(counters, index, classes, shaping.wire_rate, shaping.burst)
        self._watched[link.name] = WatchedLink(counters, index, 0x10000 if htb else 0x20000)

    def sample(self, now: float) -> Second:
        """Take a sample at ``now`` (monotonic clock); return where the CPU time went since the last."""
        for _ in self.sampling(now):
            pass
        return self.seconds[-1]

    def sampling(self, now: float) -> Iterator[None]:
        """Take a sample in pieces of a few milliseconds; urgent tasks run in between."""
        duration = max(now - self._time, 1e-6)
        waiting: dict[str, int] = defaultdict(int)
        sent: dict[str, dict[int, int]] = defaultdict(dict)
        missing = set(self._bytes)
        for counters, queues in zip(self._sockets, self._queues, strict=True):
            for entry in counters.queues():
                queue = queues.get((entry.interface, entry.handle))
                if queue is None:
                    continue
                missing.discard(queue)
                before, drops = self._bytes.get(queue, (0, 0))
                if entry.bytes < before:  # recreated since the last sample
                    self.queues.note_reset(queue.link, self._time - self._origin, now - self._origin)
                    before, drops = 0, 0
                moved = entry.bytes - before
                if moved or entry.backlog or entry.drops > drops:
                    self._add_row(now, queue, moved, entry.backlog, entry.drops - drops)
                self._bytes[queue] = (entry.bytes, entry.drops)
                waiting[queue.link] += entry.backlog
                if moved:
                    sent[queue.link][queue.level] = moved
            yield
        suspect = {queue.link for queue in missing}
        self.probe.focus(waiting)
        self.order.focus(sent)
        yield
        yield from self.queues.looking(now - self._origin, sorted(suspect))
        self._first = False
        self._account_cpu(now, duration)

    def _add_row(self, now: float, queue: _Queue, moved: int, backlog: int, drops: int) -> None:
        self.queue_drops += max(0, drops)
        if self._first:
            return
        share = payload_share(self._scale.mtu)
        self.links.append(
            LinkRow(
                time_s=(now - self._origin) / self._scale.time,
                link=queue.link,
                level=queue.level,
                bytes=self._scale.unscale_size(moved * share),
                queued_bytes=self._scale.unscale_size(backlog * share),
                drops=max(0, drops),
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
