"""What is read of the state of a simulation at line rate: counts of packets, and samples of queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.engines.flow.networks.network import PacketCounts, QueueSample
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
    counters, queues = state.counters, state.queues
    return {
        "notices": int(counters.notices[0]),
        "pauses": int(counters.pauses[0]),
        "paused_s": float(_paused_s(queues, now).ravel().sum()),  # by link, whatever lies side by side
        "dropped": int(counters.dropped[0]),
        "largest_buffer_bytes": float(state.pools.most.max()),
        "largest_headroom_bytes": float(queues["most_headroom"].max()),
        "longest_queue_bytes": float(queues["longest"].max()),
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
        queues = state.queues
        paused_s, dropped = _paused_s(queues, now), queues["dropped"].copy()
        longest = np.maximum(queues["lately"], queues["queued"])
        queues["lately"] = queues["queued"]
        stopped, lost = paused_s - self._paused_s, dropped - self._dropped
        self._paused_s, self._dropped = paused_s, dropped
        places = np.argwhere((longest > 0.5) | (stopped > 0.0) | (lost > 0)).tolist()
        return {
            (self._names[link], level): QueueSample(
                float(queues["queued"][link, level]),
                float(longest[link, level]),
                float(stopped[link, level]),
                int(lost[link, level]),
            )
            for link, level in places
        }


def _paused_s(queues: Records, now: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Seconds of pauses until ``now``, by link and level."""
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    found = queues["paused_s"] + np.where(queues["paused"] > 0, now - queues["pause_from_s"], 0.0)
    return found
