"""What the simulation keeps: records by flow, link, packet and switch, with named fields.

Sizes are bytes of the scenario, times its seconds. Numbers of flows, links, packets, paths and switches are indices;
:data:`NONE` is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.compiled import compiled_in_place

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Records: TypeAlias = Any
"""``records[number].field`` is a value that can be set."""

NONE: Final = -1

PAUSES, GO_BACK_N, SELECTIVE_REPEAT = range(3)
WHEN_FULL: Final = {"pause": PAUSES, "go-back-n": GO_BACK_N, "selective-repeat": SELECTIVE_REPEAT}
"""What is done about a queue that is too long: its sender is paused, or packets are dropped and sent again."""

_LINE: Final = 64
"""Bytes that come from memory at a time: what is used at the same time is kept in as few lines as possible."""


def _in_lines(fields: Sequence[tuple[str, type[np.generic]]]) -> np.dtype[Any]:
    """A record of ``fields`` that takes whole lines."""
    packed = np.dtype(list(fields), align=True)
    places: dict[str, Any] = dict(packed.fields or {})
    formats, offsets = [place[0] for place in places.values()], [place[1] for place in places.values()]
    size = -(-packed.itemsize // _LINE) * _LINE
    return np.dtype({"names": list(places), "formats": formats, "offsets": offsets, "itemsize": size}, align=True)


FLOW: Final = _in_lines(
    [
        # A line of what says whether it may send. The message: its bytes, those sent, and bytes sent at which an event
        # comes; those that are not answered, the window, and when it may send again.
        ("message", np.float64),
        ("sent", np.float64),
        ("until", np.float64),
        ("in_flight", np.float64),
        ("window", np.float64),
        ("next_s", np.float64),
        # The flow that it forwards; the next one that is ready at its first link; its level.
        ("after", np.int32),
        ("next_ready", np.int32),
        ("level", np.int32),
        # Whether it is in that list, whether a wake-up is planned, whether it has to send, and all has arrived.
        ("ready", np.bool_),
        ("alarm", np.bool_),
        ("sending", np.bool_),
        ("through", np.bool_),
        # A line of what a packet that leaves needs: bytes per second that a decision and congestion control allow, when
        # alpha and the rate change next, bytes since; how many packets were sent.
        ("limit", np.float64),
        ("rate", np.float64),
        ("alpha_s", np.float64),
        ("increase_s", np.float64),
        ("counted", np.float64),
        ("count", np.int64),
        # Its candidate paths are ``paths`` from the first on; packets that are under way or whose answers are; how
        # often it went back.
        ("path", np.int32),
        ("paths", np.int32),
        ("packets", np.int32),
        ("generation", np.int32),
        # A line of what a packet that arrives needs: bytes of the message and of all messages that have arrived;
        # packets, those of them with a mark, and the last of them in the order in which they were sent.
        ("arrived", np.float64),
        ("total", np.float64),
        ("delivered", np.int64),
        ("with_mark", np.int64),
        ("furthest", np.int64),
        # The last notice of congestion; the flows that forward this one, and answers on their way back.
        ("notified_s", np.float64),
        ("follower", np.int32),
        ("other_follower", np.int32),
        ("first_answer", np.int32),
        ("last_answer", np.int32),
        ("notice", np.bool_),
        # Whether a packet was dropped since it last went back; whether the receiver has asked for that, or a timeout is
        # planned.
        ("lost", np.bool_),
        ("asked", np.bool_),
        ("timer", np.bool_),
        # What it forwards: bytes that it may send at once, the leader's total before its message, and the slice.
        ("lead", np.float64),
        ("leader_total", np.float64),
        ("slice", np.float64),
        # Seconds that an answer takes back; the path of its last packet, from the first on, and when that left.
        ("back_s", np.float64),
        ("turn", np.int64),
        ("left_s", np.float64),
        # Packets that came behind one that was sent later.
        ("reordered", np.int64),
        # How long pauses have held its packets, and had done so at the last link that did, by that link's own clock of
        # pauses; of that, while no queue stood where they went. That clock at its first link when it got ready.
        ("held_s", np.float64),
        ("held_link", np.int64),
        ("held_until_s", np.float64),
        ("victim_s", np.float64),
        ("paused_s", np.float64),
        # When the packet was dropped; how often it had gone back before this message.
        ("lost_s", np.float64),
        ("first_generation", np.int64),
        # What else a transport keeps.
        ("target", np.float64),
        ("alpha", np.float64),
        ("by_time", np.int64),
        ("by_bytes", np.int64),
        ("answered", np.float64),
        ("marked", np.float64),
        ("round_end", np.float64),
        ("cut_end", np.float64),
        ("reference", np.float64),
        ("stage", np.int64),
        ("utilization", np.float64),
        ("round_trip_s", np.float64),
    ]
)

LINK: Final = _in_lines(
    [
        # Bytes on the wire per second, seconds to the other end; when the packet that is being sent has left.
        ("rate", np.float64),
        ("delay", np.float64),
        ("free_s", np.float64),
        # Packets that travel, in order.
        ("first_wire", np.int32),
        ("last_wire", np.int32),
        # The switch that it leaves and the one that it leads to, NONE for hosts; the memory of the one for what is to
        # leave by it, and of the other for what has come over it.
        ("source", np.int32),
        ("target", np.int32),
        ("pool_before", np.int32),
        ("pool_behind", np.int32),
        # A bit per level: whether a packet or a flow waits there, and whether it is paused.
        ("waiting", np.int16),
        ("paused", np.int16),
        # Whether an event is planned for the time at which it is free.
        ("planned", np.bool_),
        # Share of packets that is lost on the way.
        ("loss", np.float64),
        # Bytes waiting where marks begin, and where all packets have one; bytes sent since the beginning.
        ("mark_from", np.float64),
        ("mark_to", np.float64),
        ("sent", np.float64),
    ]
)

PACKET: Final = _in_lines(
    [
        ("payload", np.float64),
        ("at_s", np.float64),
        # Where it is in its message, and how often the flow had gone back when it was sent.
        ("offset", np.float64),
        # How long its queue had been paused, in all, when it came; seconds of pauses that it has brought to its flow's
        # account at the last link.
        ("paused_s", np.float64),
        ("held_s", np.float64),
        ("generation", np.int32),
        # How many packets of the flow were sent before it.
        ("number", np.uint32),
        ("flow", np.int32),
        ("path", np.int32),
        ("behind", np.int32),
        ("hop", np.int16),
        ("level", np.int8),
        ("marked", np.bool_),
    ]
)
"""A line: most of them wait in long queues, far from where the processor works."""

POOL: Final = np.dtype([("capacity", np.float64), ("used", np.float64), ("most", np.float64)])
"""Memory of a switch, or of one of its ports: its bytes, those that are taken, and the most that were.

No field here has a name that every record of numpy has, like ``size``: without the compiler that is what it would be.
"""

QUEUE: Final = _in_lines(
    [
        # A line for what leaves by a level of a link: the first and last packet that waits, the first and last flow
        # that may send here, and bytes on the wire that wait.
        ("first", np.int32),
        ("last", np.int32),
        ("first_ready", np.int32),
        ("last_ready", np.int32),
        ("queued", np.float64),
        # The most bytes that waited since that was read, and bytes of payload sent.
        ("lately", np.float64),
        ("sent", np.float64),
        # When two packets or more waited last; seconds of pauses that have ended, and how many pauses hold.
        ("long_s", np.float64),
        ("paused_s", np.float64),
        ("paused", np.int32),
        # A line for what came over the link: bytes in the switch at its end, those of them in its headroom, and the
        # most there; whether a pause was asked for.
        ("held", np.float64),
        ("headroom", np.float64),
        ("most_headroom", np.float64),
        ("pausing", np.bool_),
        # When the pause that holds here began.
        ("pause_from_s", np.float64),
        # The most bytes that waited to leave, and packets that found no room.
        ("longest", np.float64),
        ("dropped", np.int64),
    ]
)

EVENT: Final = np.dtype([("at_s", np.float64), ("what", np.int64)])
"""When, and a number of :data:`KINDS` per link, flow or queue."""

LINK_FREE, ARRIVAL, WAKE, ANSWER, NOTICE, PAUSE, RESUME, ASKED, TIMEOUT, LOSS = range(10)
KINDS: Final = 16


class Stamps(NamedTuple):
    """By packet, or flow, and hop, as in-band telemetry has them: bytes ``queued``, bytes ``sent`` before, and when."""

    queued: Floats
    sent: Floats
    at_s: Floats


class Rules(NamedTuple):
    """What all have in common.

    Payload of a full packet, bytes of headers on the wire; the ``transport`` and ``balancing`` by number; the largest
    share of packets that is marked at random. A queue may take ``alpha`` times what is free of its memory, or ``xoff``
    bytes where that is not 0, and must be ``resume`` bytes below to go on. A flow silent for ``flowlet_s`` may take
    another path. What is done ``when_full``, how lost packets are recovered, and how long a sender waits for answers
    before it sends again.
    """

    payload: float
    header: float
    transport: int
    balancing: int
    marked: float
    alpha: float
    xoff: float
    resume: float
    flowlet_s: float
    when_full: int
    recovery: int
    timeout_s: float


class Counters(NamedTuple):
    """One number each, in an array of one.

    Planned events, pauses and their ends among them that are on their way, unused packets, flows in ``reached``,
    whether packets or room for events ran short, the state of the random numbers; then notices, pauses, packets
    dropped, and packet hops.
    """

    planned: Integers
    changing: Integers
    unused: Integers
    reached: Integers
    short: Integers
    random: Integers
    notices: Integers
    pauses: Integers
    dropped: Integers
    hops: Integers


class State(NamedTuple):
    """All of it.

    ``queues`` [links, levels], those of a level side by side; ``agenda``: a heap of events. ``paths`` [paths, hops + 1]
    are links in order, then -1. ``unused`` packets are a stack. ``reached`` [2 flows] are flows that something has
    happened to. ``parameters`` are those of the transport, ``stamps`` of packets, ``seen`` the last ones of each flow.
    """

    flows: Records
    links: Records
    packets: Records
    pools: Records
    queues: Records
    agenda: Records
    stamps: Stamps
    seen: Stamps
    rules: Rules
    parameters: Floats
    paths: Integers
    unused: NDArray[np.int32]
    reached: Integers
    counters: Counters


@compiled_in_place
def whole(number: int) -> int:
    """``number`` of a record as all functions take it: they would be compiled for every size of integers."""
    return int(np.int64(number))
