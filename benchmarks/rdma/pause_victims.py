"""What pauses do to flows beside a congested link, and what DCQCN makes of it.

The cases are the two of Zhu et al., SIGCOMM 2015, section 2.2: unfairness, and a victim. Its text was not at hand: four
ToRs with two uplinks of 40 Gbit/s and 12 MB each, and what is expected there, are of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.common import Line, say
from benchmarks.rdma.compared import compared
from benchmarks.rdma.fixed_points import DCQCN_ECN
from benchmarks.rdma.traffic import Traffic, experiment_of, network_model
from testbed.experiment.network_model import Buffers

HOSTS_PER_TOR: Final = 5
_ENDLESS: Final = 1e12
_STEADY_S: Final = 0.05
BY_PORT: Final = "by port: pauses know no flows"
FAIR: Final = "the max-min fair share"


def unfairness(folder: Path) -> Iterator[Line]:
    """Three hosts of other ToRs and one of the receiver's send to it; the three arrive over one port, or over two."""
    receiver, neighbour = f"h{3 * HOSTS_PER_TOR}", f"h{3 * HOSTS_PER_TOR + 1}"
    for ways, near, far in (((0, 0, 0), 20.0, 20 / 3), ((0, 1, 0), 40 / 3, 20 / 3)):
        for transport in ("unlimited", "dcqcn"):
            say(f"{transport}, unfairness, ports {ways}")
            traffic = _traffic(folder, transport)
            flows = [(f"h{HOSTS_PER_TOR * number}", receiver, way) for number, way in enumerate(ways)]
            rates = _rates(traffic, [(neighbour, receiver, 0), *flows])
            ports = len(set(ways))
            for what, rate, paused in (("neighbour", rates[0], near), ("least of the others", min(rates[1:]), far)):
                label = f"{transport}: {what}, Gbit/s, others over {ports} port{'s'[: ports - 1]}"
                if transport == "dcqcn":
                    yield compared(label, 4, rate, 10, 0.25, FAIR)
                else:
                    yield compared(label, 4, rate, paused, 0.05, BY_PORT)


def victim(folder: Path) -> Iterator[Line]:
    """Four hosts of a ToR, half over each uplink, send to one host; a fifth over the first uplink to nobody they meet.

    Hosts of a third ToR that send to the same host take nothing that the fifth needs. Its fair share is what the two
    beside it leave; with pauses each uplink gets its part of the receiver, and the fifth as much as those beside it.
    """
    receiver = f"h{3 * HOSTS_PER_TOR}"
    for more, paused in ((0, 10.0), (1, 5.0), (2, 5.0)):
        fair = 40 - 2 * 40 / (4 + more)
        for transport in ("unlimited", "dcqcn"):
            say(f"{transport}, victim, {more} more")
            flows = [(f"h{number}", receiver, number % 2) for number in range(4)]
            flows += [(f"h{2 * HOSTS_PER_TOR + number}", receiver, number) for number in range(more)]
            rates = _rates(_traffic(folder, transport), [("h4", f"h{HOSTS_PER_TOR}", 0), *flows])
            label = f"{transport}: victim, Gbit/s, {more} senders elsewhere"
            if transport == "dcqcn":
                yield compared(label, 5 + more, rates[0], fair, 0.25, FAIR)
            else:
                yield compared(label, 5 + more, rates[0], paused, 0.05, f"{BY_PORT}; fair: {fair:.1f}")


def _traffic(folder: Path, transport: str) -> Traffic:
    """On switches of 12 MB."""
    model = network_model(transport, ecn=DCQCN_ECN, mtu=1024, buffers=Buffers(12e6, 0.125))
    return Traffic(experiment_of(folder, model, hosts=4 * HOSTS_PER_TOR, tors=4, aggregations=2, rate=40))


def _rates(traffic: Traffic, flows: Sequence[tuple[str, str, int]]) -> list[float]:
    """Gbit/s of each, steady; source, target and uplink."""
    places = [traffic.send(traffic.way(*flow), _ENDLESS) for flow in flows]
    traffic.run(_STEADY_S)
    return [rate / 1e9 for rate in traffic.rates(places, _STEADY_S)]
