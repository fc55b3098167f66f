"""What an emulated host needs in its own namespace: addresses, routes by source, offloads, TCP settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from topologies.mininet_adapter.offloads import ONE_PACKET, set_offloads
from topologies.mininet_adapter.system import run_batch, write_sysctls
from topologies.shaping import NIC_QUEUE_PACKETS

GATEWAY = "169.254.0.1"
GATEWAY_MAC = "02:ff:00:00:00:01"
"""Every host sends to this one neighbour; the last switch writes the real destination, as a routed fabric does."""

FIRST_TABLE = 100
"""Number of the routing table of a host's first interface."""

LARGEST_MTU = 9000
"""Of interfaces."""

MIN_RETRANSMISSION_TIMEOUT_S = 100.0
"""A flow of a low level may be starved for whole bursts; a retransmission would be an artefact."""

RETRANSMISSION_AFTER_LOSS_S = 1.0
"""Where cables fail packets may be lost, and a flow must go on soon."""

RETRANSMISSION_WITH_LOSSES_S = 0.05
"""Where cables lose packets all the time."""

# A change of IP_TOS makes a socket forget its route, and the route's minimum of the retransmission timeout with it,
# until it sends again; so the minimum is set here too, where the kernel has it (6.11).
# The fabric loses nothing, so a segment that comes late was overtaken by one of a higher level, not lost. Without
# selective acknowledgements the kernel counts duplicate ones, and windows hold fewer packets than this maximum.
HOST_SYSCTLS: Mapping[str, str] = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.tcp_congestion_control": "reno",
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_ecn": "0",
    "net.ipv4.tcp_moderate_rcvbuf": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_reordering": "300",
    "net.ipv4.tcp_sack": "0",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_timestamps": "0",
    "net.ipv4.tcp_rmem": "4096 4194304 8388608",
    "net.ipv4.ip_local_port_range": "61000 65000",
}

LATE_OPENING_SYSCTLS: Mapping[str, str] = {"net.ipv4.tcp_reflect_tos": "1"}
"""Where connections are opened while others send, an answer to a request to open carries the request's mark: without
one it would wait below all levels, and a host that retries after a second has no measured round trip and so, for its
first bytes, no minimum of the timeout. Only there: iterations are 0.4 to 0.7 % longer with it, measured, not understood
(docs/lab-notebook.md)."""

LOSSES_SYSCTLS: Mapping[str, str] = {
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_early_retrans": "3",
    "net.ipv4.tcp_recovery": "1",
}
"""Where cables lose packets: what is missing is sent again soon, as RDMA cards do."""

MARKS_SYSCTLS: Mapping[str, str] = {"net.ipv4.tcp_ecn": "1"}
"""Where switches mark packets: both ends of a connection agree to tell each other."""

SOCKET_BUFFER_BYTES = 800
"""What the kernel counts for a full packet beside its MTU, about: 9,792 bytes for one of 9,000."""


def small_queue_bytes(mtu: int) -> int:
    """Bytes in a NIC above which a connection waits: more than all packets that it may have there but one."""
    return round((NIC_QUEUE_PACKETS - 0.5) * (mtu + SOCKET_BUFFER_BYTES))


def resize_packets(interfaces: Iterable[str], mtu: int, retransmission_s: float) -> None:
    """Have the host of the current namespace send packets of ``mtu`` bytes from now on; those on the way still pass."""
    run_batch("ip", _routes("change", interfaces, mtu, retransmission_s))
    write_sysctls(small_queues(mtu))


def _routes(verb: str, interfaces: Iterable[str], mtu: int, retransmission_s: float) -> Iterator[str]:
    """Lines for ``ip -batch``: packets of the host are as large as its routes say, which interfaces never cut."""
    for table, interface in enumerate(interfaces, start=FIRST_TABLE):
        yield (
            f"route {verb} default via {GATEWAY} dev {interface} onlink table {table} mtu {mtu} "
            f"rto_min {round(1000 * retransmission_s)}ms"
        )


def other_port_routes(address: str, table: int, interface: str | None, mtu: int, retransmission_s: float) -> str:
    """A line for ``ip -batch``: packets of ``table`` to ``address`` leave by ``interface``; None: by their own."""
    if interface is None:
        return f"route del {address}/32 table {table}"
    return (
        f"route replace {address}/32 via {GATEWAY} dev {interface} onlink table {table} mtu {mtu} "
        f"rto_min {round(1000 * retransmission_s)}ms"
    )


def small_queues(mtu: int) -> dict[str, str]:
    """The setting that keeps a connection from filling its own NIC."""
    return {"net.ipv4.tcp_limit_output_bytes": str(small_queue_bytes(mtu))}


def configure_host(
    addresses: Mapping[str, str],
    mtu: int,
    late_opening: bool,
    in_kernel: bool,
    retransmission_s: float,
    losses: bool = False,
    congestion_control: str = "",
) -> dict[str, str]:
    """Configure the current namespace as a host with ``addresses`` (interface -> IPv4); return the sysctls read back.

    ``late_opening``: connections are opened while others send. ``in_kernel``: packets never leave the kernel, which
    needs no checksum of their bytes then. What is not acknowledged is sent again after ``retransmission_s``.
    ``losses``: cables lose packets, or switches drop them. ``congestion_control``: of connections, in place of windows.
    A packet leaves by the interface whose address it carries: one routing table and rule each.
    """
    again = {"net.ipv4.tcp_rto_min_us": str(round(retransmission_s * 1_000_000))}
    more = {**(LATE_OPENING_SYSCTLS if late_opening else {}), **(LOSSES_SYSCTLS if losses else {})}
    if congestion_control:
        more |= {**MARKS_SYSCTLS, "net.ipv4.tcp_congestion_control": congestion_control}
    settings = write_sysctls({**HOST_SYSCTLS, **again, **small_queues(mtu), **more})
    lines = ["link set lo up"]
    rules = []
    for table, (interface, address) in enumerate(addresses.items(), start=FIRST_TABLE):
        lines.append(f"link set {interface} up {ONE_PACKET}")
        lines.append(f"addr add {address}/32 dev {interface}")
        lines.append(f"neigh add {GATEWAY} lladdr {GATEWAY_MAC} dev {interface} nud permanent")
        rules.append(f"rule add from {address} lookup {table}")
    run_batch("ip", [*lines, *_routes("add", addresses, mtu, retransmission_s), *rules])
    for interface in addresses:
        set_offloads(interface, in_kernel)
    return settings
