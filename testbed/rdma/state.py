"""What the simulation keeps: records by flow, link, packet and switch, with named fields.

Sizes are bytes of the scenario, times its seconds. Numbers of flows, links, packets, paths and switches are indices;
:data:`NONE` is none.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Records: TypeAlias = Any
"""A structured array; ``records[number].field`` is a value that can be set."""

NONE: Final = -1

PAUSES, GO_BACK_N, SELECTIVE_REPEAT = range(3)
WHEN_FULL: Final = {"pause": PAUSES, "go-back-n": GO_BACK_N, "selective-repeat": SELECTIVE_REPEAT}
"""What is done about a queue that is too long: its sender is paused, or packets are dropped and sent again."""

FLOW: Final = np.dtype(
    [
        # The message: its bytes, those sent and those that have arrived; those of all messages that have arrived; bytes
        # sent at which an event comes.
        ("message", np.float64),
        ("sent", np.float64),
        ("arrived", np.float64),
        ("total", np.float64),
        ("until", np.float64),
        # What it forwards: bytes that it may send at once, the leader's total before its message, and the slice.
        ("lead", np.float64),
        ("leader_total", np.float64),
        ("slice", np.float64),
        ("after", np.int64),
        ("follower", np.int64),
        # Bytes per second that a decision allows, when it may send again, and seconds that an answer takes back.
        ("limit", np.float64),
        ("next_s", np.float64),
        ("back_s", np.float64),
        ("level", np.int64),
        # Its candidate paths are ``paths`` from the first on; the one of its last packet, and when that left.
        ("path", np.int64),
        ("paths", np.int64),
        ("turn", np.int64),
        ("left_s", np.float64),
        # The next flow that is ready at its first link; whether it is in that list; whether a wake-up is planned.
        ("next_ready", np.int64),
        ("ready", np.bool_),
        ("alarm", np.bool_),
        ("sending", np.bool_),
        ("through", np.bool_),
        # Packets that have arrived, and those of them with a mark, or behind one that was sent later; how many were
        # sent, and the last of those that have arrived.
        ("delivered", np.int64),
        ("with_mark", np.int64),
        ("reordered", np.int64),
        ("count", np.int64),
        ("furthest", np.int64),
        # How long pauses have held its packets, and had done so at the last link that did, by that link's own clock of
        # pauses; of that, while no queue stood where they went. That clock at its first link when it got ready.
        ("held_s", np.float64),
        ("held_link", np.int64),
        ("held_until_s", np.float64),
        ("victim_s", np.float64),
        ("paused_s", np.float64),
        # Packets that are under way or whose answers are; bytes that are not answered; answers on their way back.
        ("packets", np.int64),
        ("in_flight", np.float64),
        ("first_answer", np.int64),
        ("last_answer", np.int64),
        # Whether a packet was dropped since it last went back, and when; how often it went back, in all and before
        # this message; whether the receiver has asked for that, or a timeout is planned.
        ("lost", np.bool_),
        ("lost_s", np.float64),
        ("generation", np.int64),
        ("first_generation", np.int64),
        ("asked", np.bool_),
        ("timer", np.bool_),
        # Congestion control: rate and target in bytes per second, window in bytes, alpha; what else a transport keeps.
        ("rate", np.float64),
        ("target", np.float64),
        ("window", np.float64),
        ("alpha", np.float64),
        ("alpha_s", np.float64),
        ("increase_s", np.float64),
        ("counted", np.float64),
        ("by_time", np.int64),
        ("by_bytes", np.int64),
        ("notified_s", np.float64),
        ("notice", np.bool_),
        ("answered", np.float64),
        ("marked", np.float64),
        ("round_end", np.float64),
        ("cut_end", np.float64),
        ("reference", np.float64),
        ("stage", np.int64),
        ("utilization", np.float64),
        ("round_trip_s", np.float64),
    ],
    align=True,
)

LINK: Final = np.dtype(
    [
        # Bytes on the wire per second, seconds to the other end; when the packet that is being sent has left.
        ("rate", np.float64),
        ("delay", np.float64),
        ("free_s", np.float64),
        # Whether an event is planned for that time; packets that travel, in order.
        ("planned", np.bool_),
        ("first_wire", np.int64),
        ("last_wire", np.int64),
        # The switch that it leaves and the one that it leads to, NONE for hosts; the memory of the one for what is to
        # leave by it, and of the other for what has come over it.
        ("source", np.int64),
        ("target", np.int64),
        ("pool_before", np.int64),
        ("pool_behind", np.int64),
        # Bytes sent since the beginning; bytes waiting where marks begin, and where all packets have one.
        ("sent", np.float64),
        ("mark_from", np.float64),
        ("mark_to", np.float64),
        # A bit per level: whether a packet or a flow waits there, and whether it is paused.
        ("waiting", np.int64),
        ("paused", np.int64),
    ],
    align=True,
)

PACKET: Final = np.dtype(
    [
        ("payload", np.float64),
        ("flow", np.int64),
        ("path", np.int64),
        ("hop", np.int64),
        ("level", np.int64),
        ("behind", np.int64),
        ("at_s", np.float64),
        # Where it is in its message, and how often the flow had gone back when it was sent.
        ("offset", np.float64),
        ("generation", np.int64),
        # How many packets of the flow were sent before it.
        ("number", np.int64),
        ("marked", np.bool_),
        # How long its queue had been paused, in all, when it came; seconds of pauses that it has brought to its flow's
        # account at the last link.
        ("paused_s", np.float64),
        ("held_s", np.float64),
    ],
    align=True,
)

POOL: Final = np.dtype([("size", np.float64), ("used", np.float64), ("most", np.float64)])
"""Memory of a switch, or of one of its ports: its bytes, those that are taken, and the most that were."""

QUEUE: Final = np.dtype(
    [
        # Of a level of a link: the first and last packet that waits, and their bytes on the wire.
        ("first", np.int64),
        ("last", np.int64),
        ("queued", np.float64),
        # The first and last flow that may send here.
        ("first_ready", np.int64),
        ("last_ready", np.int64),
        # When two packets or more waited last.
        ("long_s", np.float64),
        # Bytes in the switch at the link's end that came over it, those of them in its headroom, and the most there;
        # whether a pause was asked for, and how many hold.
        ("held", np.float64),
        ("headroom", np.float64),
        ("most_headroom", np.float64),
        ("paused", np.int64),
        ("pausing", np.bool_),
        # Seconds of pauses that have ended, and when the one that holds began.
        ("paused_s", np.float64),
        ("pause_from_s", np.float64),
        # The most bytes that waited, and packets that found no room; since they were read: the most that waited, and
        # bytes of payload sent.
        ("longest", np.float64),
        ("dropped", np.int64),
        ("lately", np.float64),
        ("sent", np.float64),
    ],
    align=True,
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
    another path. What is done ``when_full``, and how long a sender waits for answers before it sends again.
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
    timeout_s: float


class Counters(NamedTuple):
    """One number each, in an array of one.

    Planned events, pauses and their ends among them that are on their way, unused packets, flows in ``reached``,
    whether packets or room for events ran short, the state of the random numbers; then marks, notices, pauses, packets
    delivered and dropped, and packet hops.
    """

    planned: Integers
    changing: Integers
    unused: Integers
    reached: Integers
    short: Integers
    random: Integers
    marks: Integers
    notices: Integers
    pauses: Integers
    delivered: Integers
    dropped: Integers
    hops: Integers


class State(NamedTuple):
    """All of it.

    ``queues`` [links, levels]; ``agenda``: a heap of events. ``paths`` [paths, hops + 1] are links in order, then -1.
    ``unused`` packets are a stack. ``reached`` [2 flows] are flows that something has happened to. ``parameters`` are
    those of the transport, ``stamps`` of packets, ``seen`` the last ones of each flow.
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
    unused: Integers
    reached: Integers
    counters: Counters


def records(count: int, kind: np.dtype[Any]) -> Records:
    """``count`` records, all zero."""
    return np.zeros(count, kind).view(np.recarray)
