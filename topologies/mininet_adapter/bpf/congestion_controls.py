"""Congestion controls that this kernel has, and those that are added to it for as long as a run lasts."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from topologies.mininet_adapter.bpf.libbpf import BpfObject
from topologies.mininet_adapter.bpf.link_queues import OBJECTS
from topologies.mininet_adapter.system import CommandError
from topologies.network.congestion import Congestion, others_can_change

AVAILABLE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED: Final = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def _names(path: Path) -> list[str]:
    return path.read_text("ascii").split()


class AddedControl:
    """The congestion control of a run. ``name`` is what sockets choose it by.

    One that this kernel has and lets network namespaces choose is taken as it is. One that is added to the kernel is
    there for as long as this object's process lives, whatever ends it.
    """

    def __init__(self, congestion: Congestion) -> None:
        """``CommandError`` where the kernel neither has it nor takes it."""
        self._object: BpfObject | None = None
        if not congestion.file and congestion.transport in _names(ALLOWED):
            self.name = congestion.transport
            return
        before = _names(AVAILABLE)
        file = Path(congestion.file) if congestion.file else OBJECTS / f"{congestion.transport}.bpf.o"
        self._object = _opened(file)
        if congestion.gap_s:
            self._object.set_constant(struct.pack("=Q", round(congestion.gap_s * 1e9)))
        self._object.register()
        added = [name for name in _names(AVAILABLE) if name not in before]
        if len(added) != 1:
            raise CommandError(f"{file} added no congestion control to this kernel")
        (self.name,) = added
        if self.name not in _names(ALLOWED):  # a kernel that refuses it there never forgets it (6.18)
            raise CommandError(f"congestion control {self.name} in {file} has no flag TCP_CONG_NON_RESTRICTED")


def _opened(path: Path) -> BpfObject:
    """The program in ``path``; one of a user's own belongs to root alone, looked at when it is open."""
    if path.parent == OBJECTS:
        return BpfObject(path)
    try:
        with path.open("rb") as file:
            if others_can_change(os.fstat(file.fileno())):
                raise CommandError(f"{path} can be changed by others than root: it is not loaded into the kernel")
            return BpfObject(Path(f"/proc/self/fd/{file.fileno()}"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
