"""A fabric as a running Mininet network with strict priority queues on every direction of every link."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from mininet.net import Mininet

from topologies.addressing import address_of, datapath_id, interface_name, mac_of, port_number
from topologies.built_part import BuiltPart
from topologies.datapath import Datapath as DatapathName
from topologies.fabric import NETWORK_KINDS, Fabric, Link
from topologies.mininet_adapter.bpf.congestion_controls import AddedControl
from topologies.mininet_adapter.bpf.link_queues import FIRST, LinkQueues
from topologies.mininet_adapter.datapaths.interface import Datapath
from topologies.mininet_adapter.datapaths.openvswitch_datapath import OpenVSwitchDatapath
from topologies.mininet_adapter.detours import Detour, detour_commands, device_commands
from topologies.mininet_adapter.hosts import (
    LARGEST_MTU,
    MIN_RETRANSMISSION_TIMEOUT_S,
    RETRANSMISSION_AFTER_LOSS_S,
    RETRANSMISSION_WITH_LOSSES_S,
    configure_host,
    resize_packets,
)
from topologies.mininet_adapter.nodes import EmulatedHost, EmulatedInterface, EmulatedLink, EmulatedSwitch
from topologies.mininet_adapter.offloads import ONE_PACKET, set_offloads
from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.ovsdb import Bridge
from topologies.mininet_adapter.steering import spread, steer
from topologies.mininet_adapter.system import network_namespace_of, run_batch, tcp_counter, write_sysctls
from topologies.mininet_adapter.tc_netlink import run_tc
from topologies.network.congestion import Congestion
from topologies.shaping import Discipline, Shaping, rate_commands, tc_commands

QUIET_SYSCTLS = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
"""Without these, neighbour discovery of every interface would travel the emulated links."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """How to emulate a fabric: link rates are divided by ``bandwidth_scale``; ``buffer`` in bytes per queue.

    ``late_opening``: hosts open connections while others send. ``lossless``: no cable fails. ``losses``: some lose
    packets all the time, or switches drop them. ``congestion``: of connections, in place of windows of one size.
    """

    bandwidth_scale: float
    mtu: int
    levels: int
    buffer: int
    datapath: DatapathName = "userspace"
    discipline: Discipline = "htb"
    shaped: bool = True
    late_opening: bool = False
    lossless: bool = True
    losses: bool = False
    congestion: Congestion | None = None

    @property
    def in_kernel(self) -> bool:
        """Whether packets never leave the kernel, and pass no code of Open vSwitch either."""
        return self.datapath == "nftables"


@dataclass
class EmulatedNetwork:
    """A fabric brought up in the namespaces of this process, which must be the run's own.

    Only ``part`` of ``fabric`` is there; names and numbers are those of the whole. ``timings`` holds the seconds each
    step of :meth:`start` took; ``steered_queues`` of its interfaces' receive queues are served by one CPU each;
    ``shares``: what failures have left of the rate of links.
    """

    fabric: Fabric
    settings: NetworkSettings
    directory: Path
    part: BuiltPart
    timings: dict[str, float] = field(default_factory=dict)
    steered_queues: int = 0
    shares: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.openvswitch = OpenVSwitch(self.directory)
        self.control: AddedControl | None = None
        self.link_queues: LinkQueues | None = None
        self.datapath = self._make_datapath()
        Mininet.inited = True  # or Mininet would raise system-wide sysctls and leave them raised
        self._mininet = Mininet(
            host=EmulatedHost, switch=EmulatedSwitch, link=EmulatedLink, controller=None, build=False
        )

    def start_hosts(self) -> None:
        """Bring up namespaces, cables and hosts; ``CommandError`` names the command that failed."""
        self._timed("openvswitch", lambda: self.openvswitch.start(self.datapath.daemon_options))
        self._timed("nodes", self._make_nodes)
        self._timed("links", self._make_links)
        self._timed("congestion control", self._add_control)
        self._timed("hosts", self._configure_hosts)
        self._timed("steering", self._steer)

    def start_switches(self, controller: str | None) -> None:
        """Bring up bridges and queues; ``controller`` is an OpenFlow target such as ``tcp:127.0.0.1:6653``.

        The controller should be listening: Open vSwitch waits a second before it tries again.
        Raises ``CommandError`` naming the command that failed.
        """
        self._timed("bridges", lambda: self._make_bridges(controller))
        self._timed("queues", self._make_queues)
        self._timed("queue counters", self._count_queues)
        self._timed("datapath", self.datapath.start)

    def _timed(self, name: str, step: Callable[[], None]) -> None:
        began = time.monotonic()
        step()
        self.timings[name] = time.monotonic() - began

    def stop(self) -> None:
        """Take everything down."""
        self.openvswitch.stop()
        self._mininet.stop()

    def reshape(self, bandwidth_scale: float, mtu: int) -> None:
        """Give every link the rate of another scale and packets another size, in place.

        ``CommandError`` names the command that failed.
        """
        resized = mtu != self.settings.mtu
        self.settings = replace(self.settings, bandwidth_scale=bandwidth_scale, mtu=mtu)
        for host, pid in self.namespaces():
            links = self.links_of_namespace(host)
            lines = [line for link in links for line in rate_commands(self.shaping_of(link))]
            with nullcontext() if pid is None else network_namespace_of(pid):
                run_tc(lines)
                if resized and pid is not None:
                    resize_packets(self.addresses_of(host), mtu, self.retransmission_s)

    def ended(self) -> str | None:
        """Which process that holds the network up has ended, in words; None if none has."""
        for host in self.part.hosts:
            node = self._mininet.nameToNode.get(host)
            if node is not None and node.shell is not None and node.shell.poll() is not None:
                return f"the process that holds the namespace of host {host} has ended"
        return self.openvswitch.ended()

    def host_pid(self, host: str) -> int:
        """Process id of the shell that holds ``host``'s namespace."""
        return int(self._mininet.nameToNode[host].pid)

    def out_of_order_segments(self) -> int:
        """TCP segments that reached a host before an earlier one of their flow, since the hosts were made."""
        return sum(tcp_counter(pid, "TCPOFOQueue") for _, pid in self.namespaces() if pid is not None)

    def namespaces(self) -> Iterator[tuple[str, int | None]]:
        """Every namespace with emulated interfaces: ("", None) for the switches, then (host, pid)."""
        yield "", None
        for host in self.part.hosts:
            yield host, self.host_pid(host)

    def shaping_of(self, link: Link) -> Shaping:
        """How the interface that sends on ``link`` is shaped."""
        settings = self.settings
        return Shaping(
            interface=interface_name(self.fabric, link),
            rate=link.capacity / settings.bandwidth_scale * self.shares.get(link.name, 1.0),
            mtu=settings.mtu,
            buffer=settings.buffer,
            levels=settings.levels,
            discipline=settings.discipline,
        )

    def links_of_namespace(self, host: str) -> list[Link]:
        """Directed links with a queue that send from ``host``, or from any switch where ``host`` is empty."""
        return self._links_of.get(host, [])

    @cached_property
    def _links_of(self) -> Mapping[str, list[Link]]:
        found: dict[str, list[Link]] = {}
        for link in filter(self._is_built, self.fabric.shaped_links):
            found.setdefault("" if link.source in self.fabric.switches else self._host_of(link), []).append(link)
        return found

    def _is_built(self, link: Link) -> bool:
        return self.part.has(link) and (link.kind in NETWORK_KINDS or self._host_of(link) in self._hosts)

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(self.part.hosts)

    def _host_of(self, link: Link) -> str:
        if link.source in self.fabric.ports:
            return self.fabric.ports[link.source].host
        nic = link.source if link.source in self.fabric.nics else link.target
        return self.fabric.nics[nic].host

    def detours_of(self, host: str) -> list[Detour]:
        """The detours of ports of ``host`` over the queues of its PCIe links, where those have any."""
        found = []
        for nic in self._shaped_nics_of.get(host, ()):
            out, into = (interface_name(self.fabric, link) for link in self.fabric.nic_links[nic])
            found += [Detour(port, out, into) for port in self.fabric.nics[nic].ports]
        return found

    @cached_property
    def _shaped_nics_of(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for nic in self.fabric.shaped_nics:
            found.setdefault(self.fabric.nics[nic].host, []).append(nic)
        return found

    def _make_nodes(self) -> None:
        for host in self.part.hosts:
            self._mininet.addHost(host)
        for switch in self.part.switches:
            self._mininet.addSwitch(switch, dpid=f"{datapath_id(self.fabric, switch):016x}")

    def _make_links(self) -> None:
        write_sysctls(QUIET_SYSCTLS)
        run_batch("ip", ["link set lo up"])
        cables = [link for link in self.fabric.network_links if link.name < link.reverse and self.part.has(link)]
        for link in cables:
            self._register_with_mininet(link)
        run_batch("ip", (self._device_command(link) for link in cables))
        names = [interface_name(self.fabric, link) for link in self.links_of_namespace("")]
        run_batch("ip", (f"link set {name} up {ONE_PACKET if self.settings.in_kernel else ''}" for name in names))
        for name in names if self.settings.in_kernel else ():
            set_offloads(name, in_kernel=True)

    def _add_control(self) -> None:
        """Have the kernel learn the congestion control of the run, if it does not know it."""
        if self.settings.congestion is not None:
            self.control = AddedControl(self.settings.congestion)

    def _count_queues(self) -> None:
        """Count what waits at every cable's ends, mark and drop above the thresholds; hosts' own queues never do."""
        congestion = self.settings.congestion
        if congestion is None:
            return
        queues = self.link_queues = LinkQueues(self._interface_numbers)
        for host, pid in self.namespaces():
            with nullcontext() if pid is None else network_namespace_of(pid):
                for link in self.links_of_namespace(host):
                    if link.name in self._interface_numbers:
                        queues.watch(self._interface_numbers[link.name])
            for link in self.links_of_namespace(host) if pid is None else ():
                queues.set_thresholds(link.name, congestion.mark_packets, congestion.drop_packets)

    @cached_property
    def _interface_numbers(self) -> Mapping[str, int]:
        """Link -> number of the interface that sends on it, no two alike in all namespaces; both ends of a cable."""
        cables = [link for link in self.fabric.network_links if link.name < link.reverse and self.part.has(link)]
        pairs = ((link.name, link.reverse) for link in cables)
        return {name: number for number, name in enumerate(chain.from_iterable(pairs), start=FIRST)}

    def _register_with_mininet(self, link: Link) -> None:
        back = self.fabric.links[link.reverse]
        names = [self._node_of(link.source), self._node_of(link.target)]
        self._mininet.addLink(
            *(self._mininet.nameToNode[name] for name in names),
            intf=EmulatedInterface,
            port1=self._mininet_port(link),
            port2=self._mininet_port(back),
            intfName1=interface_name(self.fabric, link),
            intfName2=interface_name(self.fabric, back),
        )

    def _node_of(self, endpoint: str) -> str:
        port = self.fabric.ports.get(endpoint)
        return endpoint if port is None else port.host

    def _mininet_port(self, link: Link) -> int:
        if link.source in self.fabric.switches:
            return port_number(self.fabric, link)
        host = self.fabric.hosts[self._host_of(link)]
        return sorted(port for nic in host.nics for port in self.fabric.nics[nic].ports).index(link.source)

    @property
    def _device_mtu(self) -> int:
        """Of every interface: packets may become larger than they are at first, as their hosts' routes say."""
        return max(LARGEST_MTU, self.settings.mtu)

    def _device_command(self, link: Link) -> str:
        ends = [self._device_end(self.fabric.links[name]) for name in (link.name, link.reverse)]
        return f"link add {ends[0]} type veth peer {ends[1]}"

    def _device_end(self, link: Link) -> str:
        text = f"name {interface_name(self.fabric, link)} mtu {self._device_mtu}"
        if self.settings.congestion is not None:
            text += f" index {self._interface_numbers[link.name]}"
        if link.source in self.fabric.switches:
            return text
        return f"{text} address {mac_of(self.fabric, link.source)} netns {self.host_pid(self._host_of(link))}"

    def _configure_hosts(self) -> None:
        settings, again_s = self.settings, self.retransmission_s
        for host in self.part.hosts:
            with network_namespace_of(self.host_pid(host)):
                configure_host(
                    self.addresses_of(host),
                    settings.mtu,
                    settings.late_opening,
                    settings.in_kernel,
                    again_s,
                    settings.losses,
                    "" if self.control is None else self.control.name,
                )

    @property
    def retransmission_s(self) -> float:
        """After how long hosts send again what is not acknowledged."""
        if self.settings.losses:
            return RETRANSMISSION_WITH_LOSSES_S
        return MIN_RETRANSMISSION_TIMEOUT_S if self.settings.lossless else RETRANSMISSION_AFTER_LOSS_S

    def addresses_of(self, host: str) -> dict[str, str]:
        """Interface -> address of the ports of ``host``."""
        ports = [port for nic in self.fabric.hosts[host].nics for port in self.fabric.nics[nic].ports]
        return {port: address_of(self.fabric, port) for port in ports}

    def _steer(self) -> None:
        """Let interfaces take turns with the CPUs, where all interfaces of a CPU share a backlog."""
        if self.settings.in_kernel:
            return
        cpus = os.sched_getaffinity(0)
        for host, pid in self.namespaces():
            interfaces = [interface_name(self.fabric, link) for link in self.links_of_namespace(host)]
            with nullcontext() if pid is None else network_namespace_of(pid):
                self.steered_queues += steer(spread(interfaces, cpus))

    def _make_datapath(self) -> Datapath:
        if self.settings.datapath != "nftables":
            return OpenVSwitchDatapath(self.settings.datapath, self.openvswitch)
        from topologies.mininet_adapter.datapaths.nftables_datapath import NftablesDatapath  # needs libnftables

        return NftablesDatapath(self.openvswitch, {switch: self._ports_of(switch) for switch in self.part.switches})

    def _ports_of(self, switch: str) -> dict[int, str]:
        """OpenFlow port number -> interface of ``switch``."""
        links = filter(self.part.has, self.fabric.links_from.get(switch, ()))
        return {port_number(self.fabric, link): interface_name(self.fabric, link) for link in links}

    def _make_bridges(self, controller: str | None) -> None:
        with self.openvswitch.database() as opened:
            opened.make_bridges(self._bridge(switch, controller) for switch in self.part.switches)

    def _bridge(self, switch: str, controller: str | None) -> Bridge:
        ports = self._ports_of(switch) if self.datapath.has_ports else {}
        return Bridge(switch, self._dpid(switch), self.datapath.bridge_type, ports, controller)

    def _dpid(self, switch: str) -> str:
        return f"{datapath_id(self.fabric, switch):016x}"

    def _make_queues(self) -> None:
        if not self.settings.shaped:
            return
        for host, pid in self.namespaces():
            lines = [line for link in self.links_of_namespace(host) for line in tc_commands(self.shaping_of(link))]
            if pid is None:
                run_tc(lines)
            else:
                detours = self.detours_of(host)
                with network_namespace_of(pid):
                    run_batch("ip", device_commands(detours, self._device_mtu))
                    run_tc(lines)
                    run_batch("tc", detour_commands(detours))
