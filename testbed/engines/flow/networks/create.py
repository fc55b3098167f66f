"""From an experiment to the network that carries its messages."""

from __future__ import annotations

from testbed.engines.flow.networks.fluid_network import FluidNetwork
from testbed.engines.flow.networks.network import Network
from testbed.engines.flow.networks.packet_network import PacketNetwork
from testbed.engines.flow.networks.rdma_network import RdmaNetwork
from testbed.experiment.experiment import Experiment


def create_network(experiment: Experiment) -> Network:
    """Fluids where nothing is simulated, packets of an emulation, or packets at line rate."""
    capacity = {name: link.capacity for name, link in experiment.fabric.links.items()}
    if experiment.network is None:
        return FluidNetwork(capacity, proportional=experiment.sharing == "proportional")
    return PacketNetwork(capacity, experiment) if experiment.network.as_emulated else RdmaNetwork(capacity, experiment)
