"""Congestion controls that this kernel has, and those that are added to it for as long as a run lasts."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from topologies.congestion import Congestion
from topologies.mininet_adapter.bpf.libbpf import BpfObject
from topologies.mininet_adapter.bpf.link_queues import OBJECTS
from topologies.mininet_adapter.system import CommandError

AVAILABLE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED: Final = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_COMPILER_S: Final = 60.0


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
    """The program in ``path``; C source is compiled first."""
    if path.suffix != ".c":
        return BpfObject(path)
    with tempfile.TemporaryDirectory() as place:
        made = Path(place, path.with_suffix(".o").name)
        command = ["clang", "-O2", "-g", "-mcpu=v3", "-target", "bpf", "-c", str(path), "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILER_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandError(f"{path} cannot be compiled: {error}, expected clang, or an object file") from None
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if "error" in line), "clang says nothing")
            raise CommandError(f"{path} cannot be compiled: {said}")
        return BpfObject(made)
