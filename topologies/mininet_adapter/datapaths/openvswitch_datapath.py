"""Open vSwitch forwards: its module in the kernel, or its daemon in userspace."""

from __future__ import annotations

from topologies.datapath import Datapath as Name
from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.system import CommandError
from topologies.network.load_balancing import Spread


class OpenVSwitchDatapath:
    """The datapaths ``kernel`` and ``userspace``; see :class:`topologies.mininet_adapter.datapaths.interface.Datapath`.

    Packets follow cached decisions, which are checked against the tables in the background: a confirmed change of a
    rule takes effect some milliseconds later.
    """

    has_ports = True
    daemon_options: tuple[str, ...] = ()

    def __init__(self, name: Name, openvswitch: OpenVSwitch) -> None:
        self.bridge_type = "system" if name == "kernel" else "netdev"
        self._openvswitch = openvswitch

    def start(self) -> None:
        """Do nothing: Open vSwitch forwards as soon as there are rules."""

    def spread_by(self, spread: Spread | None) -> None:
        """Groups hash flows, whole ones: ``CommandError`` for anything else."""
        if spread is not None:
            raise CommandError(f"Open vSwitch has no load balancing {spread.kind}")

    def carry_out(self) -> None:
        """Wait until packets follow the rules in the tables."""
        self._openvswitch.call("revalidator/wait")

    def make_room(self) -> None:
        """Enlarge the buffers of the daemon's sockets, which every port shares."""
        self._openvswitch.enlarge_buffers()

    def read_back(self) -> None:
        """Return None: OpenFlow's counters are those of the packets."""
