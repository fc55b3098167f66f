"""What the interfaces of the fabric leave to devices, and how they receive: one packet at a time, in order.

A veth normally puts what it receives into the backlog of the CPU that sends. All interfaces share it, 1,000 packets
deep: where hundreds of NICs begin to send together, it overflows, and the kernel drops packets outside every emulated
queue. With receive offload (GRO) on, a veth has a ring of its own, 256 packets deep, that one CPU at a time serves: no
flow loses its order, whichever CPUs send, and what a shaper lets through at once is a few packets. GRO would also join
packets of a flow into one; a largest size of one byte keeps it from that.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Mapping
from typing import Final

ONE_PACKET: Final = "gso_max_segs 1 gro_max_size 1"
"""Arguments of ``ip link set``: nothing is handed down, or received, as more than one packet."""

_SIOCETHTOOL: Final = 0x8946
_SET: Final[Mapping[str, int]] = {"tx checksum": 0x17, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}


def set_offloads(interface: str, in_kernel: bool) -> None:
    """Set the offloads of ``interface`` in the current namespace.

    ``in_kernel``: its packets never leave the kernel. Then nobody needs their checksums, and it receives by a ring of
    its own. Else a process forwards them, which takes neither super-packets nor unfinished checksums.
    """
    wanted = {"tx checksum": in_kernel, "TSO": False, "GSO": False, "GRO": in_kernel}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, on in wanted.items():
            value = array.array("B", struct.pack("II", _SET[name], on))
            fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP", interface.encode(), value.buffer_info()[0]))
