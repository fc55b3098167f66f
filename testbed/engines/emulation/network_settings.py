"""What the kernel is to emulate for a run: its scale, levels and datapath as settings of a network."""

from __future__ import annotations

from typing import Final

from testbed.experiment.experiment import Experiment
from topologies.mininet_adapter.choices import best_discipline
from topologies.mininet_adapter.network import NetworkSettings

QUEUE_BYTES: Final = 32 << 20
"""Room in each emulated queue: never full, it represents a lossless fabric."""


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
        losses=experiment.loses_packets,
    )
