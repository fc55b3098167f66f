"""Parts of an emulated network that fail: cables without carrier, slower or lossy ones, NICs that use their other port.

Each change names the command that failed in a ``CommandError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from topologies.addressing import address_of, interface_name
from topologies.mininet_adapter.hosts import FIRST_TABLE, other_port_routes
from topologies.mininet_adapter.system import network_namespace_of, run_batch, run_command
from topologies.shaping import rate_commands

if TYPE_CHECKING:
    from topologies.mininet_adapter.network import EmulatedNetwork

_TABLE: Final = "netdev losses"
_PARTS: Final = 1_000_000
"""Losses are drawn in millionths."""


class FailingParts:
    """What fails in ``network``, which has the shares of rates that are left."""

    def __init__(self, network: EmulatedNetwork) -> None:
        self._network, self._fabric = network, network.fabric
        self._losses: dict[str, float] = {}
        self._ways: dict[tuple[str, str], str] = {}

    def set_cables(self, links: Iterable[str], *, up: bool) -> None:
        """Set the cables of ``links`` up or down at switches; a host sees that its NIC has no carrier."""
        ends = (self._fabric.links[end] for link in links for end in (link, self._fabric.links[link].reverse))
        names = [interface_name(self._fabric, end) for end in ends if end.source in self._fabric.switches]
        run_batch("ip", (f"link set {name} {'up' if up else 'down'}" for name in names))

    def degrade(self, cable: str, share: float, loss: float) -> None:
        """Give both directions of ``cable`` a ``share`` of their rate, and drop a share ``loss`` of their packets."""
        for name in (cable, self._fabric.links[cable].reverse):
            link = self._fabric.links[name]
            self._network.shares[name] = share
            port = self._fabric.ports.get(link.source)
            with nullcontext() if port is None else network_namespace_of(self._network.host_pid(port.host)):
                run_batch("tc", rate_commands(self._network.shaping_of(link)))
                if loss != self._losses.get(name, 0.0):
                    run_command(["nft", "-f", "-"], text_input=_loss_rules(interface_name(self._fabric, link), loss))
                    self._losses[name] = loss

    def use_ports(self, ways: Mapping[tuple[str, str], str]) -> None:
        """Let packets between two ports' addresses leave by another port; all others leave by their own.

        ``ways``: source and target port -> the port by which packets from the one to the other leave.
        """
        changed = {pair for pair in self._ways.keys() | ways.keys() if self._ways.get(pair) != ways.get(pair)}
        for host in sorted({self._fabric.ports[source].host for source, _ in changed}):
            pairs = sorted(pair for pair in changed if self._fabric.ports[pair[0]].host == host)
            with network_namespace_of(self._network.host_pid(host)):
                run_batch("ip", [self._route(pair, ways.get(pair)) for pair in pairs])
        self._ways = dict(ways)

    def _route(self, pair: tuple[str, str], way: str | None) -> str:
        source, target = pair
        interfaces = list(self._network.addresses_of(self._fabric.ports[source].host))
        table = FIRST_TABLE + interfaces.index(source)
        settings = self._network.settings
        return other_port_routes(
            address_of(self._fabric, target), table, way, settings.mtu, self._network.retransmission_s
        )


def _loss_rules(interface: str, loss: float) -> str:
    """For ``nft -f``: a chain of its own for the interface, empty where nothing is lost any more."""
    chain = f"chain {_TABLE} out_{interface.replace('-', '_')} "
    hook = f'{{ type filter hook egress device "{interface}" priority 0; policy accept; }}'
    lines = [f"add table {_TABLE}", f"add {chain}{hook}", f"flush {chain}"]
    if loss:
        rule = chain.replace("chain", "rule", 1)
        lines.append(f"add {rule}numgen random mod {_PARTS} < {round(loss * _PARTS)} counter drop")
    return "\n".join(lines) + "\n"
