"""TCP port numbers of flows: fixed by the seed, unique where connections could be mistaken for each other."""

from __future__ import annotations

import hashlib
from typing import Final

FIRST_SOURCE_PORT: Final = 20000
SOURCE_PORTS: Final = 40000
FIRST_TARGET_PORT: Final = 5000
TARGET_PORTS: Final = FIRST_SOURCE_PORT - FIRST_TARGET_PORT
"""Ports to listen on are below those that flows come from: the same address has both."""


class PortBook:
    """Hands out port numbers: pseudo-random source ports, target ports counted up per listening address.

    A source port is taken once per NIC port and a target port once per NIC port, over all jobs, so
    that jobs that share a NIC never collide.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sources: dict[str, set[int]] = {}
        self._targets: dict[str, int] = {}

    def source_port(self, flow: str, nic_port: str) -> int:
        """Return a free TCP source port in 20000..59999 for ``flow``; ``ValueError`` when there is none left."""
        taken = self._sources.setdefault(nic_port, set())
        if len(taken) == SOURCE_PORTS:
            raise ValueError(f"port {nic_port} has no TCP source port left, expected at most {SOURCE_PORTS} flows")
        attempt = 0
        while (port := self._draw(flow, attempt)) in taken:
            attempt += 1
        taken.add(port)
        return port

    def target_port(self, nic_port: str) -> int:
        """Return the next TCP port to listen on at ``nic_port``, from 5000 up; ``ValueError`` when none is left."""
        index = self._targets.get(nic_port, 0)
        if index == TARGET_PORTS:
            raise ValueError(
                f"port {nic_port} has no TCP port left to listen on, expected at most {TARGET_PORTS} flows"
            )
        self._targets[nic_port] = index + 1
        return FIRST_TARGET_PORT + index

    def _draw(self, flow: str, attempt: int) -> int:
        digest = hashlib.sha256(f"{self._seed}|{flow}|{attempt}".encode()).digest()
        return FIRST_SOURCE_PORT + int.from_bytes(digest[:8], "big") % SOURCE_PORTS
