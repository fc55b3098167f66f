"""What is read of the state of a simulation at line rate: counts of packets, and samples of queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.engines.flow.networks.network import PacketCounts, QueueSample
from testbed.engines.flow.networks.records import columns
from testbed.rdma.state import Records, State


def counts_of_flow(record: Records) -> PacketCounts:
    """What has happened to the packets of a flow that have arrived."""
    return PacketCounts(
        packets=int(record.delivered),
        marked=int(record.with_mark),
        out_of_order=int(record.reordered),
        held_s=float(record.held_s),
        victim_s=float(record.victim_s),
    )


def counts_of_network(state: State, now: float) -> dict[str, float]:
    """What has happened since the beginning, beside what is counted by flow."""
    counters, queues = state.counters, columns(state.queues)
    return {
        "notices": int(counters.notices[0]),
        "pauses": int(counters.pauses[0]),
        "paused_s": float(_paused_s(queues, now).ravel().sum()),  # by link, whatever lies side by side
        "dropped": int(counters.dropped[0]),
        "largest_buffer_bytes": float(np.asarray(columns(state.pools)["most"]).max()),
        "largest_headroom_bytes": float(np.asarray(queues["most_headroom"]).max()),
        "longest_queue_bytes": float(np.asarray(queues["longest"]).max()),
        "packet_hops": int(counters.hops[0]),
    }


class QueueReader:
    """Reads queues from time to time."""

    def __init__(self, names: Sequence[str], state: State) -> None:
        self._names = names
        self._paused_s = np.zeros(state.queues.shape)
        self._dropped = np.zeros(state.queues.shape, np.int64)

    def take(self, state: State, now: float) -> dict[tuple[str, int], QueueSample]:
        """(link, level) -> what waits there and has happened since the last time, where anything has."""
        queues = columns(state.queues)
        paused_s, dropped, queued = _paused_s(queues, now), np.array(queues["dropped"]), np.array(queues["queued"])
        longest = np.maximum(np.asarray(queues["lately"]), queued)
        queues["lately"] = queued
        stopped, lost = paused_s - self._paused_s, dropped - self._dropped
        self._paused_s, self._dropped = paused_s, dropped
        places = np.argwhere((longest > 0.5) | (stopped > 0.0) | (lost > 0)).tolist()
        return {
            (self._names[link], level): QueueSample(
                float(queued[link, level]),
                float(longest[link, level]),
                float(stopped[link, level]),
                int(lost[link, level]),
            )
            for link, level in places
        }


def _paused_s(queues: Any, now: float) -> NDArray[np.float64]:
    """Seconds of pauses until ``now`` by link and level, of the columns of ``queues``."""
    ended_s, begun_s, pauses = (np.asarray(queues[name]) for name in ("paused_s", "pause_from_s", "paused"))
    return ended_s + np.where(pauses > 0, now - begun_s, 0.0)
