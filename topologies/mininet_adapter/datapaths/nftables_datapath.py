"""The kernel forwards by an nftables table made from the rules that Open vSwitch holds.

Bridges of Open vSwitch are of its type ``dummy``, without ports: they keep the rules and forward nothing. The table
lives in the network namespace of the run and goes with it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import nftables

from topologies.mininet_adapter.datapaths import nft_table
from topologies.mininet_adapter.datapaths.forwarding_rule import UnsupportedRuleError, rules_of
from topologies.mininet_adapter.datapaths.interface import Forwarding
from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.system import CommandError


class NftablesDatapath:
    """The datapath ``nftables``; see :class:`topologies.mininet_adapter.datapaths.interface.Datapath`.

    ``interfaces``: switch -> OpenFlow port number -> interface. Make it in the namespace of the switches.
    """

    bridge_type = "dummy"
    has_ports = False
    daemon_options: tuple[str, ...] = ("--enable-dummy",)

    def __init__(self, openvswitch: OpenVSwitch, interfaces: Mapping[str, Mapping[int, str]]) -> None:
        self._openvswitch = openvswitch
        self._interfaces = interfaces
        self._nft = nftables.Nftables()
        self._lock = threading.Lock()
        self._held: dict[str, list[nft_table.Element]] = {}
        self._reported: dict[str, str] = {}
        self._chains = ""
        self._changes = 0

    def start(self) -> None:
        """Make the table, in which every packet is dropped and counted."""
        self._command(nft_table.layout(self._interfaces))
        self._chains = self._list().chains

    def carry_out(self) -> None:
        """Bring the rules that the switches report into force, on all switches in one transaction."""
        with self._lock:
            wanted = dict(self._held)
            for switch, ports in self._interfaces.items():
                text = _without_counts(self._openvswitch.call("bridge/dump-flows", switch))
                if self._reported.get(switch) != text:
                    self._reported[switch] = text
                    self._changes += 1
                    wanted[switch] = self._elements(switch, text, ports)
            changed = [switch for switch in wanted if wanted[switch] is not self._held.get(switch)]
            old = [element for switch in changed for element in self._held.get(switch, ())]
            new = [element for switch in changed for element in wanted[switch]]
            commands = nft_table.transaction(old, new)
            if commands:
                self._command(commands)
            self._held = wanted

    @staticmethod
    def _elements(switch: str, text: str, ports: Mapping[int, str]) -> list[nft_table.Element]:
        try:
            return nft_table.elements(switch, rules_of(switch, text), ports)
        except UnsupportedRuleError as error:
            raise CommandError(str(error)) from error

    def make_room(self) -> None:
        """Do nothing: the kernel's queues share no buffer."""

    def read_back(self) -> Forwarding:
        """Return the counters of the kernel's table, and where it is not what the switches' rules make it."""
        with self._lock:
            held = self._list()
            wanted = [element for elements in self._held.values() for element in elements]
        counters: dict[str, dict[str, int]] = {switch: {} for switch in self._interfaces}
        for (switch, match), packets in held.packets.items():
            counters.setdefault(switch, {})[match.text] = packets
        wrong = nft_table.mismatches(wanted, self._chains, held)
        return Forwarding(counters, tuple(wrong), sum(held.dropped.values()), self._changes)

    def _list(self) -> nft_table.Listing:
        return nft_table.read(self._command(f"list table {nft_table.TABLE}"))

    def _command(self, text: str) -> str:
        status, output, error = self._nft.cmd(text)
        if status:
            first = str(error).strip().splitlines() or ["no message"]
            raise CommandError(f"nftables refused '{text.splitlines()[0][:60]}': {first[0]}")
        return str(output)


def _without_counts(text: str) -> str:
    """The rules of a switch without what changes by itself: each line from its priority on."""
    lines = [line for line in text.splitlines() if not line.startswith("table_id=")]
    return "\n".join(line[line.find("priority=") :] if "priority=" in line else line for line in lines)
