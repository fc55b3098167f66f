"""What can forward the packets of an emulation, by name, the best first. Pure.

``kernel`` is the module ``openvswitch``; ``nftables`` is the kernel by a table made from the rules that Open vSwitch
holds; ``userspace`` is the daemon of Open vSwitch itself.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Datapath = Literal["kernel", "nftables", "userspace"]

DATAPATHS: Final[tuple[Datapath, ...]] = get_args(Datapath)
"""Every datapath, the one that is taken where the machine has it first."""

HASHING_DATAPATHS: Final[tuple[Datapath, ...]] = ("kernel", "userspace")
"""Those whose switches hash flows to the outputs of a group themselves, as the scheduler ``ecmp-switch`` asks."""
