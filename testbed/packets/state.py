"""What the simulation keeps: records by flow, link, queue and packet, with named fields.

Sizes are bytes of the scenario, times its seconds. Numbers of flows, links, packets and paths are indices;
:data:`NONE` is none.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Records: TypeAlias = Any
"""``records[number].field`` is a value that can be set."""

NONE: Final = -1

FLOW: Final = np.dtype(
    [
        # The message: its bytes, those sent and those that have arrived; those of all messages that have arrived; bytes
        # sent at which an event comes.
        ("message", np.float64),
        ("sent", np.float64),
        ("arrived", np.float64),
        ("total", np.float64),
        ("until", np.float64),
        # What it forwards: bytes that it may send at once, the leader's total before its message, and the slice. Whom
        # it follows, and who follows it.
        ("lead", np.float64),
        ("leader_total", np.float64),
        ("slice", np.float64),
        ("after", np.int64),
        ("follower", np.int64),
        ("other_follower", np.int64),
        # Bytes per second that a decision allows, and when it may send again.
        ("limit", np.float64),
        ("next_s", np.float64),
        ("level", np.int64),
        # The first of its paths, how many there are, and the switch's group that spreads its packets over them.
        ("path", np.int64),
        ("paths", np.int64),
        ("group", np.int64),
        # How many windows it has, and the bytes in which they repeat.
        ("windows", np.int64),
        ("period", np.float64),
        # Bytes that are not acknowledged; its packets in its own NIC, and those that have arrived since the last
        # acknowledgement.
        ("in_flight", np.float64),
        ("at_nic", np.int64),
        ("unacknowledged", np.int64),
        # The first and last packet that its receiver, which takes them in order, has not taken.
        ("oldest", np.int64),
        ("newest", np.int64),
        # Whether it sends, is in the list of flows to try, has an alarm for when its limit lets it send, and whether
        # all of its message has arrived.
        ("sending", np.bool_),
        ("to_try", np.bool_),
        ("alarm", np.bool_),
        ("through", np.bool_),
    ],
    align=True,
)

LINK: Final = np.dtype(
    [
        # Bytes of payload per second; the tokens in its bucket, and at what time it held them.
        ("rate", np.float64),
        ("tokens", np.float64),
        ("since_s", np.float64),
        # A bit per level: whether a packet waits there for tokens.
        ("waiting", np.int64),
    ],
    align=True,
)

QUEUE: Final = np.dtype(
    [
        # Of a level of a link: the first and last packet that waits, and bytes of payload: those sent since they were
        # read, those that wait, and the most that have waited since they were read.
        ("first", np.int64),
        ("last", np.int64),
        ("sent", np.float64),
        ("queued", np.float64),
        ("longest", np.float64),
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
        # The next one in its queue, and the next one of its flow.
        ("behind", np.int64),
        ("later", np.int64),
        # Whether it has arrived, perhaps before an older one.
        ("landed", np.bool_),
    ],
    align=True,
)

EVENT: Final = np.dtype([("at_s", np.float64), ("what", np.int64)])
"""When, and a link or, behind all links, a flow whose alarm it is."""


class Rules(NamedTuple):
    """What packets have in common.

    The sizes of a full one's payload and headers; payload per byte on the wire; the depth of buckets in seconds;
    packets of a flow in its own NIC, and arriving packets that one acknowledgement covers. ``at_random``: packets of a
    group take its paths at random, not in turn.
    """

    payload: float
    header: float
    payload_share: float
    bucket_s: float
    at_nic: int
    acknowledged_together: int
    at_random: bool


class Counters(NamedTuple):
    """One number each, in an array of one.

    Planned events, unused packets; where the ring of flows to try begins, and how many are in it; flows in ``reached``;
    whether packets ran short.
    """

    planned: Integers
    unused: Integers
    first_to_try: Integers
    to_try: Integers
    reached: Integers
    short: Integers


class State(NamedTuple):
    """All of it.

    ``queues`` [links, levels]; ``agenda``: a heap of events. ``windows`` [flows, parts] in bytes. ``paths`` [paths,
    hops + 1] are links in order, then -1. ``unused`` packets are a stack. ``to_try`` [flows] is a ring of flows that
    may be able to send, ``reached`` [2 flows] are those that something has happened to. ``turns`` [groups]: what the
    path of a group's next packet follows from.
    """

    flows: Records
    links: Records
    queues: Records
    packets: Records
    agenda: Records
    rules: Rules
    windows: Floats
    paths: Integers
    unused: Integers
    to_try: Integers
    reached: Integers
    turns: Integers
    counters: Counters
