"""What the simulation of packets keeps: plain arrays, by flow, by link and by packet.

Sizes are bytes of the scenario, times its seconds. Numbers of flows, links, packets and paths are indices; -1 is none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE: Final = -1

# Columns of numbers with fractions kept for each flow.
SIZE, SENT, ARRIVED, TOTAL, LEAD, BASE, LIMIT, UNTIL, NEXT_S, SLICE, PERIOD, IN_FLIGHT = range(12)
VALUES: Final = 12
"""Of the message: its bytes, those sent and those that have arrived; those of all messages that have arrived. The
message's lead, and the total of the flow it forwards before that one's message. Bytes per second, at most; bytes sent
at which an event comes; when a flow with a limit may send again; the slice it forwards by; the bytes in which its
windows repeat; bytes that are not acknowledged."""

# Columns of whole numbers kept for each flow.
AFTER, FOLLOWER, LEVEL, PATH, AT_NIC, UNACKNOWLEDGED, WINDOWS, OLDEST, NEWEST, SENDING, TO_TRY, ALARM, THROUGH = range(
    13
)
NUMBERS: Final = 13
"""The flow that it forwards and the one that forwards it; its level and path; its packets in its own NIC; packets that
have arrived since the last acknowledgement; how many windows it has; its oldest and newest packet that its receiver
has not taken, which takes them in order; then flags: whether it sends, is in the list of
flows to try, has an alarm for when its limit lets it send, and whether all of its message has arrived."""


class Flows(NamedTuple):
    """By flow: :data:`VALUES` and :data:`NUMBERS`, and its windows [flows, parts] in bytes."""

    values: Floats
    numbers: Integers
    windows: Floats


class Links(NamedTuple):
    """By link: a token bucket and a queue per level.

    ``rate`` [links] in bytes of payload per second; ``tokens`` in its bucket at ``since``; whether packets are
    ``waiting`` for tokens; the ``first`` and ``last`` packet of each queue [links, levels]; bytes ``sent`` per level.
    """

    rate: Floats
    tokens: Floats
    since: Floats
    waiting: Flags
    first: Integers
    last: Integers
    sent: Floats


class Packets(NamedTuple):
    """By packet: payload, flow, path and place on it, level, the one ``behind`` it in a queue; and ``unused`` ones.

    ``later``: the next one of its flow; ``landed``: whether it has arrived, perhaps before an older one.
    """

    size: Floats
    flow: Integers
    path: Integers
    hop: Integers
    level: Integers
    behind: Integers
    later: Integers
    landed: Flags
    unused: Integers


class Agenda(NamedTuple):
    """A heap of what happens next: ``time`` and ``what``, a link or, behind all links, a flow whose alarm it is."""

    time: Floats
    what: Integers


class Rules(NamedTuple):
    """What packets have in common.

    The sizes of a full one's payload and headers; payload per byte on the wire; the depth of buckets in seconds;
    packets of a flow in its own NIC, and arriving packets that one acknowledgement covers.
    """

    payload: float
    header: float
    payload_share: float
    bucket_s: float
    at_nic: int
    acknowledged_together: int


# Counters.
PLANNED, UNUSED, FIRST_TO_TRY, TO_TRY_COUNT, REACHED, SHORT = range(6)
COUNTERS: Final = 6
"""Entries of the agenda; unused packets; where the list of flows to try begins, and its length; flows in ``reached``;
whether there are no unused packets left."""


class State(NamedTuple):
    """All of it.

    ``paths`` [paths, hops + 1] are links in order, then -1. ``to_try`` [flows] is a ring of flows that may be able to
    send, ``reached`` [2 flows] those that something has happened to.
    """

    flows: Flows
    links: Links
    packets: Packets
    agenda: Agenda
    rules: Rules
    paths: Integers
    to_try: Integers
    reached: Integers
    counters: Integers
