"""Evidence of a run as rows of numbers, for the file of its environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.engines.emulation.probes.rate_probe import RateProbe
from testbed.fidelity.observations import Wait
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.shaping import segment_size


def run_delay_rows(waits: Sequence[Wait]) -> list[list[float]]:
    """[time, ovs-vswitchd, controller, slowest worker, quota on ovs-vswitchd] of every sample, in shares of it."""
    rows: dict[float, list[float]] = {}
    for wait in waits:
        row = rows.setdefault(wait.time_s, [wait.time_s, 0.0, 0.0, 0.0, 0.0])
        place = {"ovs-vswitchd": 1, "the controller": 2}.get(wait.process, 3)
        row[place] = max(row[place], round(wait.share, 4))
        if place == 1:
            row[4] = round(wait.quota_s / wait.duration_s, 4)
    return list(rows.values())


def stretch_rows(probe: RateProbe, origin: float) -> dict[str, list[list[float]]]:
    """Link -> [begin, end, reached / set rate] of its busy stretches, on the run's clock."""
    return {
        link: [
            [round(s.begin - origin, 3), round(s.end - origin, 3), round(probe.share(link, s), 4)] for s in stretches
        ]
        for link, stretches in probe.stretches().items()
    }


def network_document(network: EmulatedNetwork, time_scale: float, against_tc: Mapping[int, int]) -> dict[str, object]:
    """How the network forwards, queues and marks, for the record; with what congestion control came to."""
    settings = network.settings
    found: dict[str, object] = {
        "datapath": settings.datapath,
        "priority_queues": settings.discipline,
        "steered_queues": network.steered_queues,
    }
    if settings.congestion is None or network.control is None or network.link_queues is None:
        return found
    counts = list(network.link_queues.all())
    marking = [queue for link, _, queue in counts if network.link_queues.threshold(link)[0]]
    entered = sum(queue.entered for queue in marking)
    full = settings.bandwidth_scale / time_scale * segment_size(settings.mtu)
    found["network"] = {
        "packets": entered,
        "marked_share": sum(queue.marked for queue in marking) / max(1, entered),
        "dropped": sum(queue.dropped for queue in marking),
        "longest_queue_bytes": full * max((queue.longest_packets for queue in marking), default=0),
    }
    found["congestion"] = {
        "control": network.control.name,
        "mark_packets": settings.congestion.mark_packets,
        "drop_packets": settings.congestion.drop_packets,
        "marked": sum(queue.marked for queue in marking),
        "longest_packets": max((queue.longest_packets for queue in marking), default=0),
        "against_tc": {str(packets): often for packets, often in sorted(against_tc.items())},
        "queues": [[link, level, queue.entered, queue.marked, queue.dropped] for link, level, queue in counts],
    }
    return found
