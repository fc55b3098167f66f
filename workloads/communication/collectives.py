"""Collectives as messages between NIC ports: which port sends how much to which, and which byte waits for which.

S is the size of the operation in bytes: for allreduce, reduce-scatter and all-gather the whole
vector (a GPU's gradient; the full buffer), for all-to-all the bytes one GPU hands in, its own
share included. n counts hosts unless said otherwise. What happens inside a host sends no packets:
``workloads.communication.intra_host`` computes what it moves. A collective inside one host sends nothing.

========================  ==========================================================================
``hierarchical``          allreduce: reduce-scatter in the host, one ring of hosts per rail over S/rails
                          each, all-gather in the host. A NIC sends 2(n-1)/n S/rails
``reduce-scatter``        its first half: (n-1)/n S/rails per NIC
``all-gather``            its second half: (n-1)/n S/rails per NIC
``tree``                  allreduce: as above with two binary trees of hosts per rail in place of the ring, each for
                          half: sums go up, results come down. A NIC sends 2 S/rails at most, S/rails at a root
``ring``                  allreduce: one flat ring of all N NICs of the job. It enters a host at the
                          first NIC and leaves at the last, sending 2(N-1)/N S there
``scattered-ring``        allreduce: one ring of all G GPUs that goes from host to host at every step, as ranks
                          that were dealt out host by host form it. A GPU sends 2(G-1)/G S by its NIC
``alltoall``              every host pair exchanges S g g'/G bytes each way (g, g' GPUs on the two
                          hosts, G in the job) spread over the rails, the k-th NIC to the k-th. Where experts
                          are not equally popular, a host whose GPUs get the share w of the tokens is sent S g w
``parameter-server``      a shard of the model at each of G GPUs: gradients to it, parameters from it. Every host
                          pair exchanges 2 S g g'/G bytes each way, spread over the rails
``point-to-point``        pipeline stages: every host sends S per GPU to the next, the last to none
``broadcast``             S from the first host along a chain of hosts, S/rails per NIC, in chunks of S/rails/n
========================  ==========================================================================

The factors are those of nccl-tests' bus bandwidth with n hosts in place of n ranks. In a tree a sum waits for the
child whose own tree is deepest; what the other child sends is waited for at the end, since a
``workloads.job.Transfer`` waits for one. Halving-doubling is left out. A NIC of several ports sends an even stripe over
each.

Over several channels (NCCL's: connections of one pair of ports, each with a five-tuple of its own) the operation is
split evenly: every channel carries out the collective on its share of the S bytes, independently of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Final, cast

from topologies.input.spelling import expectation
from workloads.communication.double_tree import deepest_children, depths, double_tree
from workloads.communication.layout import HostShare, Layout


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """A connection of a job from port to port; operations of one ``role`` share it.

    ``number`` tells the connections of one role and pair of ports from each other.
    """

    role: str
    source: str
    target: str
    number: int = 0

    def flow_id(self, job: str) -> str:
        """Id of the flow that job ``job`` opens for this channel: ``big:ring:h0n0p0>h1n0p0``, the second ``ring.1``."""
        role = f"{self.role}.{self.number}" if self.number else self.role
        return f"{job}:{role}:{self.source}>{self.target}"


@dataclass(frozen=True, slots=True)
class Message:
    """``bytes`` on a channel; those from ``lead`` on follow what arrives on ``after`` (see ``Transfer``)."""

    channel: Channel
    bytes: float
    after: Channel | None = None
    lead: float = 0.0


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective: the ``messages`` of one of so many bytes on a layout, and how often these go round.

    Each of the ``passes`` of n participants over S bytes puts (n - 1)/n S on a participant's wire; None where nothing
    goes round. ``summary`` is one line for people who choose one.
    """

    messages: Callable[[Layout, float], Iterator[Message]]
    passes: int | None
    summary: str = ""

    def bus_factor(self, participants: int) -> float:
        """busbw / algbw of nccl-tests: bytes on a participant's wire per byte of S."""
        return 1.0 if self.passes is None else self.passes * (participants - 1) / participants


@dataclass(frozen=True, slots=True)
class _Hop:
    """One step of a ring: NIC to NIC, ``total`` bytes of which the first ``lead`` are the sender's own."""

    source: str
    target: str
    total: float
    lead: float


def _ring(layout: Layout, hops: Sequence[_Hop]) -> Iterator[Message]:
    """Messages of a closed ring, port by port; each follows the one from the hop before."""
    ports = min(len(layout.fabric.nics[hop.source].ports) for hop in hops)
    for side in range(ports):
        channels = [Channel("ring", *layout.port_pairs(hop.source, hop.target)[side]) for hop in hops]
        for index, hop in enumerate(hops):
            yield Message(channels[index], hop.total / ports, channels[index - 1], hop.lead / ports)


def _rails(layout: Layout, size: float, passes: int) -> Iterator[Message]:
    """One ring of hosts per rail; a vector of S/rails goes round ``passes`` times, less the last step of each."""
    shares, hosts = layout.shares, len(layout.shares)
    chunk = size / layout.rails / hosts
    for rail in range(layout.rails):
        nics = [layout.rail_nic(share, rail) for share in shares]
        total = passes * (hosts - 1) * chunk
        yield from _ring(layout, [_Hop(nic, nics[(i + 1) % hosts], total, chunk) for i, nic in enumerate(nics)])


def _hierarchical(layout: Layout, size: float) -> Iterator[Message]:
    return _rails(layout, size, passes=2)


def _half(layout: Layout, size: float) -> Iterator[Message]:
    return _rails(layout, size, passes=1)


def _trees(layout: Layout, size: float) -> Iterator[Message]:
    """Two trees per rail: inner hosts of one are mostly leaves of the other (Sanders et al., 2009; NCCL since 2.4)."""
    hosts = len(layout.shares)
    for rail in range(layout.rails):
        for number, parents in enumerate(double_tree(hosts)):
            yield from _tree(layout, rail, f"tree{number}", parents, size / layout.rails / 2)


def _tree(layout: Layout, rail: int, role: str, parents: Sequence[int | None], size: float) -> Iterator[Message]:
    nics = [layout.rail_nic(share, rail) for share in layout.shares]
    sides = min(len(layout.fabric.nics[nic].ports) for nic in nics)
    depth, deepest = depths(parents), deepest_children(parents)

    def channel(source: int, target: int, side: int) -> Channel:
        return Channel(role, *layout.port_pairs(nics[source], nics[target])[side])

    chunk = size / len(nics) / sides
    pairs = sorted(((host, up) for host, up in enumerate(parents) if up is not None), key=lambda pair: depth[pair[0]])
    for side in range(sides):
        for host, up in reversed(pairs):
            below = deepest[host]
            before = None if below is None else channel(below, host, side)
            yield Message(channel(host, up, side), size / sides, before, 0.0 if before is None else chunk)
        for host, up in pairs:
            above = parents[up] if parents[up] is not None else deepest[up]
            yield Message(channel(up, host, side), size / sides, channel(cast(int, above), up, side), chunk)


def _flat_ring(layout: Layout, size: float) -> Iterator[Message]:
    """A chunk that enters a host passes its m NICs at once, so a byte leaves m chunks after it entered."""
    shares, chunk = layout.shares, size / layout.nics
    total = 2 * (layout.nics - 1) * chunk
    following = (*shares[1:], shares[0])
    hops = [
        _Hop(share.nics[-1], after.nics[0], total, len(share.nics) * chunk)
        for share, after in zip(shares, following, strict=True)
    ]
    return _ring(layout, hops)


def scattered_pairs(layout: Layout) -> Iterator[tuple[str, str]]:
    """Each GPU and the next in a ring of ranks that were dealt out host by host."""
    most = max(len(share.names) for share in layout.shares)
    ranks = [share.names[turn] for turn in range(most) for share in layout.shares if turn < len(share.names)]
    return zip(ranks, (*ranks[1:], ranks[0]), strict=True)


def _scattered_ring(layout: Layout, size: float) -> Iterator[Message]:
    """Where a host has more GPUs than the others, a chunk passes its last ones without leaving it."""
    fabric, chunk = layout.fabric, size / layout.gpus
    hops: list[tuple[str, str, int]] = []
    inside = 0
    for gpu, following in scattered_pairs(layout):
        if fabric.host_of_gpu[gpu] == fabric.host_of_gpu[following]:
            inside += 1
            continue
        hops.append((fabric.nic_of_gpu[gpu], fabric.nic_of_gpu[following], 1 + inside))
        inside = 0
    if inside:  # what passed inside the first host came in by the last hop
        source, target, own = hops[0]
        hops[0] = (source, target, own + inside)
    seen: Counter[tuple[str, str]] = Counter()
    channels: list[tuple[Channel, ...]] = []
    for source, target, _ in hops:
        role = f"ring{seen[source, target]}"
        seen[source, target] += 1
        channels.append(tuple(Channel(role, *pair) for pair in layout.port_pairs(source, target)))
    sides = min(len(each) for each in channels)
    for side in range(sides):
        for index, (_, _, own) in enumerate(hops):
            before = channels[index - 1][side]
            yield Message(channels[index][side], 2 * (layout.gpus - 1) * chunk / sides, before, own * chunk / sides)


def _send(layout: Layout, role: str, source: HostShare, target: HostShare, size: float) -> Iterator[Message]:
    """``size`` bytes from host to host, spread over rails and ports, waiting for nothing."""
    for rail in range(layout.rails):
        pairs = layout.port_pairs(layout.rail_nic(source, rail), layout.rail_nic(target, rail))
        for source_port, target_port in pairs:
            yield Message(Channel(role, source_port, target_port), size / layout.rails / len(pairs))


def _pairs(layout: Layout) -> Iterator[tuple[HostShare, HostShare]]:
    """Hosts start with their successor, so that the first messages of all hosts do not contend at one host."""
    shares, hosts = layout.shares, len(layout.shares)
    for step in range(1, hosts):
        for index, source in enumerate(shares):
            yield source, shares[(index + step) % hosts]


def _alltoall(layout: Layout, size: float) -> Iterator[Message]:
    for source, target in _pairs(layout):
        yield from _send(layout, "alltoall", source, target, size * source.gpus * sum(target.tokens))


def _broadcast(layout: Layout, size: float) -> Iterator[Message]:
    """A chain of hosts per rail, chunk by chunk; the first host's bytes are its own, the last one sends nothing."""
    shares, hosts = layout.shares, len(layout.shares)
    chunk = size / layout.rails / hosts
    for rail in range(layout.rails):
        before: tuple[Channel, ...] = ()
        for source, target in pairwise(shares):
            pairs = layout.port_pairs(layout.rail_nic(source, rail), layout.rail_nic(target, rail))
            channels = tuple(Channel("chain", *pair) for pair in pairs)
            for side, channel in enumerate(channels):
                after = before[side % len(before)] if before else None
                lead = chunk / len(channels) if before else 0.0
                yield Message(channel, size / layout.rails / len(channels), after, lead)
            before = channels


def _parameter_server(layout: Layout, size: float) -> Iterator[Message]:
    """Both directions at once: the next iteration's parameters are taken while gradients are pushed."""
    for source, target in _pairs(layout):
        yield from _send(layout, "server", source, target, 2 * size * source.gpus * target.gpus / layout.gpus)


def _point_to_point(layout: Layout, size: float) -> Iterator[Message]:
    for source, target in pairwise(layout.shares):
        yield from _send(layout, "point", source, target, size * source.gpus)


COLLECTIVES: Final[Mapping[str, Collective]] = MappingProxyType(
    {
        "hierarchical": Collective(_hierarchical, 2, "allreduce: inside each host, then a ring per NIC, as NCCL"),
        "tree": Collective(_trees, 2, "allreduce: inside each host, then two binary trees per NIC, as NCCL"),
        "ring": Collective(_flat_ring, 2, "allreduce: one ring over all GPUs, host by host"),
        "scattered-ring": Collective(
            _scattered_ring, 2, "allreduce: a ring over ranks that were dealt out host by host"
        ),
        "reduce-scatter": Collective(_half, 1, "the first half of an allreduce: sums end on one GPU each"),
        "all-gather": Collective(_half, 1, "the second half of an allreduce: every GPU gets all parts"),
        "broadcast": Collective(_broadcast, None, "the first host's bytes to all others, along a chain of hosts"),
        "alltoall": Collective(_alltoall, 1, "every GPU sends a part to every other, as mixtures of experts do"),
        "parameter-server": Collective(
            _parameter_server, 2, "gradients to servers, a shard at each GPU; parameters back"
        ),
        "point-to-point": Collective(_point_to_point, None, "pipeline stages: every host sends to the next"),
    }
)
"""What a scenario may name as ``collective``."""


ALGORITHMS: Final[Mapping[str, str]] = MappingProxyType({"allreduce": "hierarchical"})
"""What an operation of other tools is carried out as, where the names differ."""


def collective_named(name: str) -> Collective:
    """Return the collective ``name``; ``ValueError`` for one that is not in ``COLLECTIVES``."""
    if name not in COLLECTIVES:
        raise ValueError(f"unknown collective '{name}', {expectation(name, COLLECTIVES)}")
    return COLLECTIVES[name]


def expand(
    collective: str, layout: Layout, size: float, *, channels: int = 1, most: int | None = None
) -> tuple[Message, ...]:
    """Return the messages of one ``collective`` of ``size`` bytes; at most one per channel, the first ``most``.

    Each pair of ports shares its bytes evenly among so many ``channels``. Empty for a job inside one host and for
    ``size`` 0. Raises ``ValueError`` for a name not in ``COLLECTIVES`` and for a negative size.
    """
    chosen = collective_named(collective)
    if size < 0:
        raise ValueError(f"a collective of {size:g} bytes")
    if size == 0 or len(layout.shares) < 2:
        return ()
    split = (part for message in chosen.messages(layout, size) for part in _over_channels(message, channels))
    return tuple(islice(split, most))


def _over_channels(message: Message, channels: int) -> Iterator[Message]:
    """``message`` in equal parts; a part waits for the same channel of the message before."""
    if channels == 1:
        yield message
        return
    for number in range(channels):
        yield Message(
            replace(message.channel, number=number),
            message.bytes / channels,
            None if message.after is None else replace(message.after, number=number),
            message.lead / channels,
        )


def returned(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages that wait for nothing, each in the opposite direction."""
    return tuple(
        replace(each, channel=replace(each.channel, source=each.channel.target, target=each.channel.source))
        for each in messages
    )


def apart(groups: Sequence[tuple[Message, ...]], role: str) -> Iterator[Message]:
    """Yield the messages of all ``groups``, on connections of their own where groups use the same pair of ports.

    ``role`` comes before the role of each of their channels.
    """
    used: dict[Channel, int] = {}
    for messages in groups:
        number = max((used.get(message.channel, 0) for message in messages), default=0)
        suffix = f"+{number}" if number else ""

        def own(channel: Channel, suffix: str = suffix) -> Channel:
            return replace(channel, role=f"{role}{channel.role}{suffix}")

        for message in messages:
            used[message.channel] = number + 1
            after = None if message.after is None else own(message.after)
            yield replace(message, channel=own(message.channel), after=after)


def sent_in_pairs(pairs: Iterable[Layout], size: float, channels: int, role: str) -> tuple[Message, ...]:
    """Return what the first GPU of each of ``pairs`` sends the second, ``size`` bytes; equal ports send together.

    ``role`` comes before the role of each of their channels.
    """
    sizes: dict[Channel, float] = {}
    for pair in pairs:
        for message in expand("point-to-point", pair, size, channels=channels):
            channel = replace(message.channel, role=role + message.channel.role)
            sizes[channel] = sizes.get(channel, 0.0) + message.bytes
    return tuple(Message(channel, total) for channel, total in sizes.items())
