"""What the kernel is to emulate for a run: its scale, levels and datapath as settings of a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from topologies.mininet_adapter.choices import best_discipline
from topologies.mininet_adapter.network import NetworkSettings
from topologies.network.congestion import Congestion
from topologies.network.load_balancing import Spread
from topologies.units import format_time

QUEUE_BYTES: Final = 32 << 20
"""Room in each emulated queue: never full, it represents a lossless fabric."""


SHORTEST_GAP_MS: Final = 8
"""Two ticks of a kernel with 250 a second: it measures no shorter silence."""


def spread_of(experiment: Experiment) -> Spread | None:
    """How switches spread packets; None where they do not. ``RunFailedError`` for flowlets that are too short."""
    match experiment.load_balancing:
        case "spray" | "spray-in-turn" as kind:
            return Spread(kind)
        case "flowlet":
            gap_ms = round(experiment.flowlet_gap_s * experiment.scale.time * 1000)
            if gap_ms < SHORTEST_GAP_MS:
                least = format_time(SHORTEST_GAP_MS / 1000 / experiment.scale.time)
                given = format_time(experiment.flowlet_gap_s)
                raise RunFailedError(
                    f"network.flowlet_gap is {given}, expected at least {least} at time scale "
                    f"{experiment.scale.time:g}: the kernel measures no shorter silence"
                )
            return Spread("flowlet", gap_ms)
    return None


def network_settings_of(experiment: Experiment) -> NetworkSettings:
    """The settings with which the network of ``experiment`` comes up."""
    return NetworkSettings(
        bandwidth_scale=experiment.scale.bandwidth,
        mtu=experiment.scale.mtu,
        levels=experiment.levels,
        buffer=QUEUE_BYTES,
        datapath=experiment.datapath,
        discipline=best_discipline(),
        late_opening=experiment.jobs_come_later,
        lossless=not experiment.failures,
        losses=experiment.loses_packets or (experiment.congestion is not None and experiment.congestion.lossy),
        congestion=_congestion_of(experiment),
    )


def _congestion_of(experiment: Experiment) -> Congestion | None:
    """That of the experiment, its silence in seconds of this machine's clock."""
    found = experiment.congestion
    return None if found is None else replace(found, gap_s=found.gap_s * experiment.scale.time)
