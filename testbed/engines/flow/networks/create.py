"""From an experiment to the network that carries its messages."""

from __future__ import annotations

from typing import Final

from testbed.engines.common.messages import EmptyPath
from testbed.engines.flow.networks.fluid_network import FluidNetwork
from testbed.engines.flow.networks.network import Network
from testbed.engines.flow.networks.packet_network import PacketNetwork
from testbed.engines.flow.networks.rdma_network import RdmaNetwork
from testbed.experiment.experiment import Experiment

LATENCY_S: Final = 1e-6
"""Seconds by which a message arrives later for each link of its path: the alpha of an alpha-beta link."""


def create_network(experiment: Experiment) -> Network:
    """Fluids where nothing is simulated, packets of an emulation, or packets at line rate."""
    capacity = {name: link.capacity for name, link in experiment.fabric.links.items()}
    if experiment.network is None:
        return FluidNetwork(capacity, proportional=experiment.sharing == "proportional")
    return PacketNetwork(capacity, experiment) if experiment.network.as_emulated else RdmaNetwork(capacity, experiment)


def empty_path(experiment: Experiment) -> EmptyPath:
    """What a path of that network costs a message that has it to itself."""
    model = experiment.network
    if model is None or model.as_emulated:
        return EmptyPath(LATENCY_S)
    return EmptyPath(model.delays.link, model.delays.switch, experiment.scale.unscale_size(model.mtu))
