"""TCP port numbers of flows and draws of jobs: fixed by the seed and by places in the fabric, not by names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from topologies.fabric import Fabric

FIRST_SOURCE_PORT: Final = 20000
SOURCE_PORTS: Final = 40000
FIRST_TARGET_PORT: Final = 5000
TARGET_PORTS: Final = FIRST_SOURCE_PORT - FIRST_TARGET_PORT
"""Ports to listen on are below those that flows come from: the same address has both."""


class PortBook:
    """Hands out port numbers: pseudo-random source ports, target ports counted up per listening address.

    A source port is taken once per NIC port and a target port once per NIC port, over all jobs, so
    that jobs that share a NIC never collide. What is drawn depends on places in the fabric and on how many were there
    before: a job or a host may have any name, and a job keeps its draws when others are left out.
    """

    def __init__(self, seed: int, fabric: Fabric) -> None:
        self.seed = seed
        self._port_place = fabric.port_place
        self._gpu_place = fabric.gpu_place
        self._sources: dict[str, set[int]] = {}
        self._targets: dict[str, int] = {}
        self._drawn: Counter[str] = Counter()

    def source_port(self, source: str, target: str) -> int:
        """Return a free TCP source port in 20000..59999 for the next flow between two NIC ports.

        ``ValueError`` when ``source`` has none left.
        """
        return self.source_port_by(self._numbered(f"{self._port_place[source]}>{self._port_place[target]}"), source)

    def source_port_by(self, key: str, source: str) -> int:
        """Return a free TCP source port at ``source`` that ``key`` and the seed fix; ``ValueError`` without one."""
        taken = self._sources.setdefault(source, set())
        if len(taken) == SOURCE_PORTS:
            raise ValueError(f"port {source} has no TCP source port left, expected at most {SOURCE_PORTS} flows")
        attempt = 0
        while (port := self._draw(key, attempt)) in taken:
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

    def draws(self, gpus: Sequence[str]) -> tuple[str, ...]:
        """Return for each of ``gpus`` what fixes the draws of the next job on it: the next one draws anew."""
        return tuple(self._numbered(str(self._gpu_place[gpu])) for gpu in gpus)

    def _numbered(self, place: str) -> str:
        """``place`` for the first that asks, then ``place`` with a number."""
        self._drawn[place] += 1
        return place if self._drawn[place] == 1 else f"{place}#{self._drawn[place]}"

    def _draw(self, key: str, attempt: int) -> int:
        digest = hashlib.sha256(f"{self.seed}|{key}|{attempt}".encode()).digest()
        return FIRST_SOURCE_PORT + int.from_bytes(digest[:8], "big") % SOURCE_PORTS
