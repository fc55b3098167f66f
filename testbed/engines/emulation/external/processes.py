"""The processes of a real program: all that its command has started, and the sockets that they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Holder:
    """A descriptor of a process."""

    pid: int
    descriptor: int


def parents() -> dict[int, int]:
    """Return process -> its parent, for all that there are."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            text = Path(f"/proc/{name}/stat").read_text()
        except OSError:  # it has ended meanwhile
            continue
        found[int(name)] = int(text.rpartition(")")[2].split()[1])
    return found


def descendants(root: int, parent_of: Mapping[int, int]) -> list[int]:
    """Return ``root`` and every process below it, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def sockets_of(pids: Iterable[int]) -> dict[int, Holder]:
    """Return inode -> who holds the socket, for all sockets of ``pids``."""
    found: dict[int, Holder] = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                match = _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{name}"))
                if match:
                    found.setdefault(int(match[1]), Holder(pid, int(name)))
        except OSError:  # the process has ended, or closed it, meanwhile
            continue
    return found
