"""What the network of a simulation is: how packets are sent, marked, stored and led."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from topologies.network.congestion import KERNEL_TRANSPORTS
from topologies.network.load_balancing import LoadBalancing

Transport = Literal["window", "dcqcn", "dctcp", "hpcc", "unlimited", "reno", "cubic", "mltcp"]
"""``window``: a fixed number of packets in flight and token buckets for links, as an emulation has them. A simulation
has ``dcqcn``, ``dctcp``, ``hpcc`` and ``unlimited``, none, at line rate; an emulation those of
:data:`topologies.network.congestion.KernelTransport`."""
SIMULATED: Final[tuple[Transport, ...]] = tuple(
    name for name in get_args(Transport) if name == "dctcp" or name not in KERNEL_TRANSPORTS
)


@dataclass(frozen=True, slots=True)
class Ecn:
    """Where marks begin and where every packet has one, in bytes waiting at a link of ``rate`` bit/s.

    ``packets``: in their place, full packets that wait at a level when the next one is marked, as an emulation has it.

    In proportion at other links; in between up to ``probability`` of the packets are marked. The default: 400 and 1,600
    KB at 100 Gbit/s, 0.2, as in the simulator of HPCC's authors (alibaba-edu/High-Precision-Congestion-Control).
    """

    minimum: float = 400e3
    maximum: float = 1600e3
    probability: float = 0.2
    rate: float = 100e9
    packets: int | None = None


WhenFull = Literal["pause", "go-back-n", "selective-repeat"]


@dataclass(frozen=True, slots=True)
class Buffers:
    """``size`` bytes of a switch for all its ports, or of each port; a queue may take ``alpha`` times what is free.

    ``when_full``: then it is paused, or packets are dropped and sent again, after ``timeout_s`` if not before. With
    ``xoff``, a queue is paused at so many bytes whatever is free, until it holds no more than ``xon``. ``headroom``:
    bytes beyond ``size`` that a port keeps for each level, for packets that are under way when it asks for a pause;
    None for what they need.
    """

    size: float = 32e6
    alpha: float = 0.125
    when_full: WhenFull = "pause"
    timeout_s: float = 1e-3
    per: Literal["switch", "port"] = "switch"
    xoff: float | None = None
    xon: float | None = None
    headroom: float | None = None


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds that a packet takes along a cable, and through a switch."""

    link: float = 1e-6
    switch: float = 0.0


@dataclass(frozen=True)
class NetworkModel:
    """The network of a simulation. ``parameters`` of the transport by name, all of them; ``mtu``: payload in bytes."""

    transport: Transport = "window"
    parameters: Mapping[str, float] = field(default_factory=dict)
    ecn: Ecn = Ecn()
    buffers: Buffers = Buffers()
    load_balancing: LoadBalancing = "hash"
    delays: Delays = Delays()
    mtu: int = 4096
    flowlet_gap_s: float = 500e-6

    @property
    def as_emulated(self) -> bool:
        """Whether it is the network of an emulation, whose packets depend on its scale."""
        return self.transport == "window"


AS_EMULATED: Final = NetworkModel()
"""The network that an emulation has."""

PER_FLOW: Final = (
    (
        "packets",
        "",
        "packets delivered in a simulation at line rate, or that came to queues of switches in an emulation with "
        "congestion control; null elsewhere, like those below where nothing counts them",
    ),
    ("marked_share", "share", "share of them that a switch marked"),
    ("out_of_order_share", "share", "share of them that arrived after a packet of their flow that was sent later"),
    ("held_s", "s", "how long pauses held packets, summed over flows"),
    ("victim_s", "s", "of that, while no queue stood at the link where they went next: others were to blame"),
)
"""What is counted of the packets of a flow, a job or a run at line rate: its name, unit and meaning."""
COUNTED: Final = (
    *PER_FLOW,
    ("notices", "", "congestion notifications that senders got"),
    ("pauses", "", "times that a level of a link was paused"),
    ("paused_s", "s", "how long that lasted, all levels of all links together"),
    ("dropped", "", "packets that switches dropped"),
    ("largest_buffer_bytes", "bytes", "most bytes that a switch, or a port with a buffer of its own, held at a time"),
    ("largest_headroom_bytes", "bytes", "most bytes that came in at a level of a port that had asked for a pause"),
    ("longest_queue_bytes", "bytes", "most bytes that waited at one level of a link"),
)
"""The same of a network."""
