"""Which GPUs a job gets: placed by hand, in order, or spread so that it crosses ToRs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final

from topologies.fabric import Fabric, Host
from workloads.errors import JobError


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What a job asks for: a number of GPUs, or these ``placement`` GPUs (node names)."""

    job: str
    gpus: int
    placement: tuple[str, ...] | None = None


Policy = Callable[[Fabric, Set[str], int], tuple[str, ...]]
"""(fabric, free GPUs, number wanted, at most as many as are free) -> GPUs."""


def place(requests: Sequence[GpuRequest], fabric: Fabric, policy: str) -> dict[str, tuple[str, ...]]:
    """Return job -> GPUs; no GPU is given twice.

    Explicit placements come first, the other jobs follow in order under ``policy``. Raises
    :class:`JobError` for the first job that cannot be placed, ``ValueError`` for an unknown policy.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown placement policy '{policy}', expected one of: {', '.join(POLICIES)}")
    owner: dict[str, str] = {}
    placed: dict[str, tuple[str, ...]] = {}
    # Not looked through where nobody asks for any: a large fabric has many.
    left = dict.fromkeys(fabric.gpus if any(request.placement is None for request in requests) else ())
    for request in sorted(requests, key=lambda item: item.placement is None):
        if request.placement is not None:
            chosen = _explicit(request, request.placement, fabric, owner)
        else:
            free = left.keys()
            if request.gpus > len(free):
                raise JobError(request.job, f"needs {request.gpus} GPUs, {len(free)} are free")
            chosen = POLICIES[policy](fabric, free, request.gpus)
        owner.update(dict.fromkeys(chosen, request.job))
        for gpu in chosen:
            left.pop(gpu, None)
        placed[request.job] = chosen
    return {request.job: placed[request.job] for request in requests}


def _explicit(
    request: GpuRequest, placement: tuple[str, ...], fabric: Fabric, owner: Mapping[str, str]
) -> tuple[str, ...]:
    seen: set[str] = set()
    for gpu in placement:
        if gpu not in fabric.host_of_gpu:
            raise JobError(request.job, f"there is no GPU '{gpu}' in fabric {fabric.name}")
        if gpu in seen:
            raise JobError(request.job, f"GPU '{gpu}' is listed twice")
        if gpu in owner:
            raise JobError(request.job, f"GPU '{gpu}' is taken by job '{owner[gpu]}'")
        seen.add(gpu)
    return placement


def first_free(fabric: Fabric, free: Set[str], wanted: int) -> tuple[str, ...]:
    """The first free GPUs, host by host."""
    return tuple(islice((gpu for gpu in fabric.gpus if gpu in free), wanted))


def spread(fabric: Fabric, free: Set[str], wanted: int) -> tuple[str, ...]:
    """Equal shares on hosts under different ToRs, as many ToRs as divide the job evenly.

    More than one host per ToR only where a share would not fit otherwise; one host where only that
    divides it; NIC by NIC in turns where nothing does. ToRs with most free GPUs come first.
    """
    hosts = _interleaved(fabric, free)
    tors = len({tor_of(fabric, host) for host in hosts})
    for count in (*range(min(tors, wanted), 1, -1), *range(tors + 1, len(hosts) + 1), 1):
        if wanted % count or count > len(hosts):
            continue
        chosen = _equal_shares(fabric, hosts, free, count, wanted // count)
        if chosen:
            return chosen
    return _nic_by_nic(fabric, hosts, free, wanted)


def tor_of(fabric: Fabric, host: Host) -> str:
    """The ToR of a host's first port."""
    return fabric.ports[fabric.nics[host.nics[0]].ports[0]].switch


def _interleaved(fabric: Fabric, free: Set[str]) -> tuple[Host, ...]:
    """Hosts with free GPUs: first one of each ToR, then the second of each, fullest free ToR first."""
    by_tor: dict[str, list[Host]] = {}
    for host in fabric.hosts.values():
        if any(gpu in free for gpu in host.gpus):
            by_tor.setdefault(tor_of(fabric, host), []).append(host)
    room = {tor: sum(gpu in free for host in hosts for gpu in host.gpus) for tor, hosts in by_tor.items()}
    order = sorted(by_tor, key=lambda tor: -room[tor])
    depth = max((len(hosts) for hosts in by_tor.values()), default=0)
    return tuple(by_tor[tor][rank] for rank in range(depth) for tor in order if rank < len(by_tor[tor]))


def _equal_shares(fabric: Fabric, hosts: Sequence[Host], free: Set[str], count: int, share: int) -> tuple[str, ...]:
    """``share`` GPUs on each of ``count`` hosts, over as many ToRs as that takes; empty if it does not fit."""
    fitting = [host for host in hosts if sum(gpu in free for gpu in host.gpus) >= share]
    chosen: list[Host] = []
    tors: set[str] = set()
    for host in fitting:
        if tor_of(fabric, host) not in tors:
            chosen.append(host)
            tors.add(tor_of(fabric, host))
    chosen += [host for host in fitting if host not in chosen]
    if len(chosen) < count:
        return ()
    picked = sorted(chosen[:count], key=lambda host: host.index)
    return tuple(gpu for host in picked for gpu in _by_nic(fabric, host, free)[:share])


def _by_nic(fabric: Fabric, host: Host, free: Set[str]) -> tuple[str, ...]:
    """A host's free GPUs, those behind wholly free NICs first, so that jobs share a NIC only when they must."""
    groups = [[gpu for gpu in fabric.nics[nic].gpus if gpu in free] for nic in host.nics]
    whole = {nic: len(group) == len(fabric.nics[nic].gpus) for nic, group in zip(host.nics, groups, strict=True)}
    ordered = sorted(zip(host.nics, groups, strict=True), key=lambda item: not whole[item[0]])
    return tuple(gpu for _, group in ordered for gpu in group)


def _nic_by_nic(fabric: Fabric, hosts: Sequence[Host], free: Set[str], wanted: int) -> tuple[str, ...]:
    """One NIC's GPUs per host and turn, until there are enough."""
    chosen = set(list(_turns(fabric, hosts, free))[:wanted])
    return tuple(gpu for gpu in fabric.gpus if gpu in chosen)


def _turns(fabric: Fabric, hosts: Sequence[Host], free: Set[str]) -> Iterator[str]:
    for turn in range(max(len(host.nics) for host in hosts)):
        for host in hosts:
            if turn < len(host.nics):
                yield from (gpu for gpu in fabric.nics[host.nics[turn]].gpus if gpu in free)


POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"first-free": first_free, "spread": spread})
"""What a scenario may name as ``placement_policy``."""
