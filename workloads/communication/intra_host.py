"""What a collective moves inside the hosts of a job: between its GPUs, and between GPUs and NICs.

Two options of the fabric say what counts. ``intra_host`` is what GPUs of a host talk over: their
NVLinks (through the NVLink switch ``h0nv``), or PCIe, through the switch two GPUs share or by the
root complex ``h0rc`` from one switch to the other; ``instant`` traffic counts nowhere. ``pcie_queues:
emulated`` counts the path of network traffic between a NIC and the job's GPUs nearest to it. With
``intra_host: pcie`` that path counts too: both kinds of traffic use the same links.

Bytes between GPUs, for an operation of S bytes and g GPUs of the job on a host (n hosts, R rails,
N NICs, G GPUs in all; as NCCL does it: rings inside a host, rings or pairs of NICs between hosts):

========================  ======================================================================
``hierarchical``          a ring of the host's GPUs, reduce-scatter and all-gather: each sends 2(g-1)/g S
``reduce-scatter``        one half of it: each sends (g-1)/g S
``all-gather``            likewise
``ring``                  the host's part of the flat ring: each but the last sends 2(N-1)/N S to the
                          next; in a job of one host a closed ring of its g GPUs, 2(g-1)/g S each
``alltoall``              each GPU sends S/G to every other on its host, and what came in for another
                          rail, (G-g)/G (R-1)/R S, on to the others evenly; with w in place of 1/G to a GPU
                          whose experts get the share w of the tokens
``scattered-ring``        2(G-1)/G S from each GPU to the next where that is on the same host: nowhere, if all
                          hosts have as many GPUs
``parameter-server``      each GPU sends 2 S/G to every other on its host
``point-to-point``        nothing: a GPU sends by the NIC nearest to it
``broadcast``             S from each GPU of a host to the next
========================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations

from topologies.fabric import Fabric
from workloads.communication.collectives import Message, collective_named, scattered_pairs
from workloads.communication.layout import HostShare, Layout
from workloads.models.model import PhaseTemplate

LinkBytes = tuple[tuple[str, float], ...]


def inside_bytes(layout: Layout, phase: PhaseTemplate, messages: Iterable[Message]) -> LinkBytes:
    """Return (link, bytes) inside hosts of the collective of ``phase`` whose ``messages`` cross the network.

    Empty where the fabric counts nothing inside hosts. In order of first use, every link once, none with 0 bytes.
    """
    fabric = layout.fabric
    total: dict[str, float] = {}
    if fabric.intra_host != "instant":
        for share in layout.shares:
            for source, target, moved in _between_gpus(phase.collective, layout, share, phase.bytes):
                way = (target, source) if phase.returning else (source, target)
                _add(total, _gpu_to_gpu(fabric, *way), moved)
            for source, target, moved in _between_gpus(phase.collective, layout, share, phase.back_bytes):
                _add(total, _gpu_to_gpu(fabric, target, source), moved)
    if fabric.pcie_queues == "emulated" or fabric.intra_host == "pcie":
        for message in messages:
            _add_way_to_network(total, layout, message)
    return tuple((link, moved) for link, moved in total.items() if moved > 0)


def _add(total: dict[str, float], links: Iterable[str], moved: float) -> None:
    for link in links:
        total[link] = total.get(link, 0.0) + moved


def _between_gpus(collective: str, layout: Layout, share: HostShare, size: float) -> Iterator[tuple[str, str, float]]:
    """(GPU, GPU, bytes) of what GPUs of one host send each other."""
    names, gpus = share.names, len(share.names)
    if gpus < 2 or collective == "point-to-point":
        return
    if collective == "broadcast":
        yield from ((*pair, size) for pair in pairwise(names))
        return
    if collective == "parameter-server":
        yield from ((source, target, 2 * size / layout.gpus) for source, target in permutations(names, 2))
    elif collective == "alltoall":
        passed_on = (layout.gpus - gpus) * (layout.rails - 1) / layout.rails / (gpus - 1)
        wanted = dict(zip(names, share.tokens, strict=True))
        yield from (
            (source, target, size * wanted[target] * (1 + passed_on)) for source, target in permutations(names, 2)
        )
    elif collective == "scattered-ring" and len(layout.shares) > 1:
        moved, own = 2 * (layout.gpus - 1) / layout.gpus * size, set(names)
        yield from ((*pair, moved) for pair in scattered_pairs(layout) if own.issuperset(pair))
    elif collective == "ring" and len(layout.shares) > 1:
        yield from ((*pair, 2 * (layout.nics - 1) / layout.nics * size) for pair in pairwise(names))
    else:
        moved = collective_named(collective).bus_factor(gpus) * size
        yield from ((*pair, moved) for pair in pairwise((*names, names[0])))


def _gpu_to_gpu(fabric: Fabric, source: str, target: str) -> Sequence[str]:
    """The links from one GPU to another of its host."""
    if fabric.intra_host == "nvlink":
        hub = f"{fabric.host_of_gpu[source]}nv"
        return f"{source}->{hub}", f"{hub}->{target}"
    here, there = (fabric.nics[fabric.nic_of_gpu[gpu]].pcie_switch for gpu in (source, target))
    if here == there:
        return f"{source}->{here}", f"{there}->{target}"
    root = f"{fabric.host_of_gpu[source]}rc"
    return f"{source}->{here}", f"{here}->{root}", f"{root}->{there}", f"{there}->{target}"


def _add_way_to_network(total: dict[str, float], layout: Layout, message: Message) -> None:
    """What a message crosses before its first port and after its last: the job's GPUs at a NIC have equal parts."""
    fabric = layout.fabric
    source, target = (fabric.nics[fabric.ports[port].nic] for port in (message.channel.source, message.channel.target))
    out, into = fabric.nic_links[source.name][0], fabric.nic_links[target.name][1]
    senders, receivers = _gpus_at(layout, source.name), _gpus_at(layout, target.name)
    for gpu in senders:
        _add(total, (f"{gpu}->{source.pcie_switch}",), message.bytes / len(senders))
    _add(total, (out.name, into.name), message.bytes)
    for gpu in receivers:
        _add(total, (f"{target.pcie_switch}->{gpu}",), message.bytes / len(receivers))


def _gpus_at(layout: Layout, nic: str) -> list[str]:
    """The job's GPUs nearest to ``nic``."""
    near = layout.fabric.nics[nic].gpus
    return [
        gpu
        for share in layout.shares
        if share.host == layout.fabric.nics[nic].host
        for gpu in share.names
        if gpu in near
    ]
