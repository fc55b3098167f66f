"""A fabric for the testbed, in a package of its own: every host has one NIC, on one switch."""

from typing import Annotated

from testbed.plugins import Count, Fabric, FabricBuilder, HostShape, Rate, require_counts


def star(
    *,
    hosts: Annotated[int, Count("number of hosts")],
    gpus_per_host: Annotated[int, Count("GPUs of a host")] = 1,
    port_rate: Annotated[float, Rate("rate of a host's cable, each direction")] = 100e9,
) -> Fabric:
    """Return the fabric; ``ValueError``, the parameter's name first, if it cannot be."""
    require_counts(hosts=hosts)
    shape = HostShape(hosts, gpus_per_host, nics=1, ports_per_nic=1, port_rate=port_rate)
    builder = FabricBuilder()
    switches = builder.add_switches("tor", 1)
    for index in range(hosts):
        builder.add_host(shape, index, switches)
    return builder.build("star", f"{hosts} hosts x {gpus_per_host} GPUs on one switch", shape)
