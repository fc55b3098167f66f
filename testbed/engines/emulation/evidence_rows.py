"""Evidence of a run as rows of numbers, for the file of its environment. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.engines.emulation.probes.rate_probe import RateProbe
from testbed.fidelity.observations import Wait


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
