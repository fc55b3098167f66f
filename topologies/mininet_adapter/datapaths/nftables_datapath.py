"""The kernel forwards by an nftables table made from the rules that Open vSwitch holds.

Bridges of Open vSwitch are of its type ``dummy``, without ports: they keep the rules and forward nothing. The table
lives in the network namespace of the run and goes with it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import nftables

from topologies.mininet_adapter.datapaths import nft_groups, nft_table
from topologies.mininet_adapter.datapaths.forwarding_rule import SwitchRules, UnsupportedRuleError, rules_of
from topologies.mininet_adapter.datapaths.interface import Forwarding
from topologies.mininet_adapter.datapaths.nft_groups import Group, HeldGroup
from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.system import CommandError, run_command
from topologies.network.load_balancing import Spread, SpreadCount


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
        self._spread: Spread | None = None
        self._nft = nftables.Nftables()
        self._lock = threading.Lock()
        self._held: dict[str, list[nft_table.Element]] = {}
        self._groups: dict[str, dict[Group, HeldGroup]] = {}
        self._reported: dict[str, str] = {}
        self._chains = ""
        self._changes = 0

    def start(self) -> None:
        """Make the table, in which every packet is dropped and counted."""
        self._command(nft_table.layout(self._interfaces))
        self._chains = self._list().chains

    def spread_by(self, spread: Spread | None) -> None:
        """Let groups spread packets so from now on, once there are any; None: no rule may use a group."""
        self._spread = spread

    def carry_out(self) -> None:
        """Bring the rules that the switches report into force, on all switches in one transaction."""
        with self._lock:
            wanted, groups = dict(self._held), dict(self._groups)
            for switch, ports in self._interfaces.items():
                text = _without_counts(self._openvswitch.call("bridge/dump-flows", switch))
                if self._reported.get(switch) != text:
                    self._reported[switch] = text
                    self._changes += 1
                    wanted[switch], groups[switch] = self._wanted(switch, text, ports)
            changed = [switch for switch in wanted if wanted[switch] is not self._held.get(switch)]
            old = [element for switch in changed for element in self._held.get(switch, ())]
            new = [element for switch in changed for element in wanted[switch]]
            commands = nft_table.transaction(old, new)
            come, gone = self._changed_groups(changed, groups)
            if commands:
                self._command("\n".join([*come, commands, *gone]))
            self._held, self._groups = wanted, groups
            if come:
                self._note_chains()

    def _changed_groups(
        self, changed: Sequence[str], groups: Mapping[str, Mapping[Group, HeldGroup]]
    ) -> tuple[list[str], list[str]]:
        """The commands that make groups which are new, and those that remove the ones that nobody uses any more."""
        come: list[str] = []
        gone: list[str] = []
        for switch in changed if self._spread is not None else ():
            assert self._spread is not None
            before, after = self._groups.get(switch, {}), groups[switch]
            for group in [group for group in after if group not in before]:
                come += nft_groups.made(group, after[group].verdicts, self._spread, nft_table.TABLE)
            for group in [group for group in before if group not in after]:
                gone += nft_groups.removed(group, self._spread, nft_table.TABLE)
        return come, gone

    def _note_chains(self) -> None:
        """Note how nftables lists the chains of new groups."""
        listed = self._list().groups
        for groups in self._groups.values():
            for group, made in groups.items():
                if not made.chain and group.chain in listed:
                    groups[group] = made._replace(chain=listed[group.chain].chain)

    def _wanted(
        self, switch: str, text: str, ports: Mapping[int, str]
    ) -> tuple[list[nft_table.Element], dict[Group, HeldGroup]]:
        """What the kernel's table is to hold for the rules ``text`` of a switch."""
        try:
            rules = rules_of(switch, text)
            groups = self._groups_of(switch, rules)
        except UnsupportedRuleError as error:
            raise CommandError(str(error)) from error
        known = self._groups.get(switch, {})
        made = {group: known.get(group) or _new(group, ports) for group in groups.values()}
        return nft_table.elements(switch, rules, ports, groups), made

    def _groups_of(self, switch: str, rules: SwitchRules) -> dict[int, Group]:
        """The groups that ``rules`` use, as the switch reports them."""
        used = {rule.group for rule in rules.values() if rule.group is not None}
        if not used:
            return {}
        if self._spread is None:
            raise UnsupportedRuleError(f"switch {switch}: nftables does not hash flows to the outputs of a group")
        return {number: g for number, g in nft_groups.groups_of(switch, self._dump(switch)).items() if number in used}

    def _dump(self, switch: str) -> str:
        target = f"unix:{self._openvswitch.directory / switch}.mgmt"
        return run_command(["ovs-ofctl", "-O", "OpenFlow13", "dump-groups", target])

    def make_room(self) -> None:
        """Do nothing: the kernel's queues share no buffer."""

    def read_back(self) -> Forwarding:
        """Return the counters of the kernel's table, and where it is not what the switches' rules make it."""
        with self._lock:
            held = self._list()
            wanted = [element for elements in self._held.values() for element in elements]
            groups = {group: made for of_switch in self._groups.values() for group, made in of_switch.items()}
        counters: dict[str, dict[str, int]] = {switch: {} for switch in self._interfaces}
        for (switch, match), packets in held.packets.items():
            counters.setdefault(switch, {})[match.text] = packets
        wrong = [*nft_table.mismatches(wanted, self._chains, held), *nft_groups.mismatches(groups, held.groups)]
        spread = tuple(
            SpreadCount(group.switch, self._devices(group), held.groups[group.chain].packets)
            for group in groups
            if group.chain in held.groups
        )
        return Forwarding(counters, tuple(wrong), sum(held.dropped.values()), self._changes, spread)

    def _devices(self, group: Group) -> tuple[str, ...]:
        return tuple(self._interfaces[group.switch][output] for output in group.outputs)

    def _list(self) -> nft_table.Listing:
        return nft_table.read(self._command(f"list table {nft_table.TABLE}"))

    def _command(self, text: str) -> str:
        status, output, error = self._nft.cmd(text)
        if status:
            first = str(error).strip().splitlines() or ["no message"]
            raise CommandError(f"nftables refused '{text.splitlines()[0][:60]}': {first[0]}")
        return str(output)


def _new(group: Group, ports: Mapping[int, str]) -> HeldGroup:
    """How ``group`` is to be made; its chain is known when nftables has listed it."""
    if missing := [output for output in group.outputs if output not in ports]:
        raise CommandError(f"switch {group.switch}: group {group.number} has port {missing[0]}, which is not there")
    return HeldGroup(tuple(nft_table.output_to(ports[output]) for output in group.outputs), ())


def _without_counts(text: str) -> str:
    """The rules of a switch without what changes by itself: each line from its priority on."""
    lines = [line for line in text.splitlines() if not line.startswith("table_id=")]
    return "\n".join(line[line.find("priority=") :] if "priority=" in line else line for line in lines)
