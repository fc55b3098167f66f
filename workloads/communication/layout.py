"""How a job is placed on the fabric: per host its GPUs and their nearest NICs.

The unit that takes part in a collective over the network is a NIC with the GPUs nearest to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from topologies.fabric import Fabric


@dataclass(frozen=True, slots=True)
class HostShare:
    """A job's ``gpus`` on one host, and the NICs of the fabric nearest to them, in order; ``names`` are the GPUs'.

    ``tokens``: the share of all tokens that the experts of each of these GPUs get.
    """

    host: str
    gpus: int
    nics: tuple[str, ...]
    names: tuple[str, ...]
    tokens: tuple[float, ...]


@dataclass(frozen=True)
class Layout:
    """A job's hosts in ring order: the order in which its GPUs name them."""

    shares: tuple[HostShare, ...]
    fabric: Fabric

    @cached_property
    def rails(self) -> int:
        """NICs every host can offer: the k-th of each host form rail k."""
        return min(len(share.nics) for share in self.shares)

    @cached_property
    def _common(self) -> tuple[int, ...]:
        """Numbers of the NICs that all hosts of the job use; empty where they are no rails."""
        if not self.fabric.has_rail_switches:
            return ()
        numbers = ({self.fabric.nics[nic].index for nic in share.nics} for share in self.shares)
        return tuple(sorted(set.intersection(*numbers)))

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return sum(share.gpus for share in self.shares)

    @property
    def nics(self) -> int:
        """NICs of the job."""
        return sum(len(share.nics) for share in self.shares)

    def rail_nic(self, share: HostShare, rail: int) -> str:
        """The NIC of a host on ``rail``; where a host has more NICs than rails, rails spread over them.

        Where the fabric has ToRs of their own for rails, and all hosts use as many NICs of the same numbers, it is
        those, so that a rail stays on its ToR.
        """
        if len(self._common) == self.rails:
            return self.fabric.hosts[share.host].nics[self._common[rail]]
        return share.nics[rail * len(share.nics) // self.rails]

    def port_pairs(self, source: str, target: str) -> tuple[tuple[str, str], ...]:
        """Port p of NIC ``source`` with port p of NIC ``target``: a stripe stays on its side of the fabric."""
        return tuple(zip(self.fabric.nics[source].ports, self.fabric.nics[target].ports, strict=False))


def layout_of(gpus: Sequence[str], fabric: Fabric, tokens: Sequence[float] = ()) -> Layout:
    """Return the layout of ``gpus`` (node names), which get ``tokens`` (shares; equal ones if not given).

    ``KeyError`` for a GPU the fabric lacks.
    """
    by_host: dict[str, dict[str, float]] = {}
    for gpu, share in zip(gpus, tokens or [1 / len(gpus)] * len(gpus), strict=True):
        by_host.setdefault(fabric.host_of_gpu[gpu], {})[gpu] = share
    return Layout(tuple(_share(fabric, host, members) for host, members in by_host.items()), fabric)


def _share(fabric: Fabric, host: str, tokens: Mapping[str, float]) -> HostShare:
    used = {fabric.nic_of_gpu[gpu] for gpu in tokens}
    nics = tuple(nic for nic in fabric.hosts[host].nics if nic in used)
    return HostShare(host, len(tokens), nics, tuple(tokens), tuple(tokens.values()))
