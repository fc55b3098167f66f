"""The network of a scenario: what that of a simulation is, and how flows share links in the flow engine."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from testbed.experiment.experiment import Sharing
from testbed.experiment.network_model import SIMULATED, Buffers, Delays, Ecn, NetworkModel, Transport, WhenFull
from testbed.rdma.transports.dispatch import defaults_of
from testbed.scenario.quantities import Count, Factor, PositiveTime, Rate, Share, Size, Time
from topologies.input.spelling import expectation
from topologies.network.congestion import MARK_PACKETS, Congestion
from topologies.network.load_balancing import LoadBalancing
from topologies.units import format_size

_ECN: Final = Ecn()
_BUFFERS: Final = Buffers()
_DELAYS: Final = Delays()
SMALLEST_PAYLOAD: Final = 256
LARGEST_PAYLOAD: Final = 9000


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EcnSpec(_Spec):
    """Marks; see :class:`testbed.experiment.network_model.Ecn`."""

    minimum: Size = Field(_ECN.minimum, description="bytes waiting at which marks begin")
    maximum: Size = Field(_ECN.maximum, description="bytes waiting at which every packet has one")
    probability: Share = Field(_ECN.probability, description="share of packets with a mark just below the maximum")
    rate: Rate = Field(_ECN.rate, description="rate of the link that these bytes are for; in proportion at others")
    packets: Count | None = Field(
        None, description="full packets that wait at a level of a link when the next one gets a mark, in place of bytes"
    )

    @model_validator(mode="after")
    def _fits(self) -> EcnSpec:
        if self.maximum < self.minimum:
            least = format_size(self.minimum)
            raise ValueError(f"maximum is {format_size(self.maximum)}, expected at least minimum, {least}")
        return self


class BuffersSpec(_Spec):
    """Buffers of switches; see :class:`testbed.experiment.network_model.Buffers`."""

    size: Size = Field(_BUFFERS.size, description="bytes of a switch, or of each of its ports")
    per: Literal["switch", "port"] = Field(_BUFFERS.per, description="whose they are: the ports share them, or not")
    alpha: Factor = Field(_BUFFERS.alpha, description="how many times what is free a queue may take")
    when_full: WhenFull = Field(_BUFFERS.when_full, description="then pause it, or drop packets, which are sent again")
    timeout: PositiveTime = Field(_BUFFERS.timeout_s, description="when they are sent again if no answer asks for it")
    xoff: Size | None = Field(None, description="bytes of a level of a port at which it is paused, in place of alpha")
    xon: Size | None = Field(None, description="bytes at which it goes on; without it two packets below xoff")
    packets: Count | None = Field(
        None, description="full packets that wait at a level of a link when the next one is dropped; in an emulation"
    )
    headroom: Size | None = Field(
        None, description="bytes beyond size of each level of a port, for what is under way when it pauses"
    )

    @model_validator(mode="after")
    def _fits(self) -> BuffersSpec:
        if self.when_full != "pause" and (self.xoff is not None or self.headroom is not None):
            name = "headroom" if self.xoff is None else "xoff"
            raise ValueError(f"{name} is about pauses, expected when_full: pause, or no {name}")
        if self.xon is not None and self.xoff is None:
            raise ValueError("xon needs a fixed xoff, expected xoff beside it, or no xon")
        if self.xon is not None and self.xoff is not None and self.xon >= self.xoff:
            raise ValueError(f"xon is {format_size(self.xon)}, expected less than xoff, {format_size(self.xoff)}")
        return self

    def value(self) -> Buffers:
        """Return them as engines take them."""
        return Buffers(
            self.size, self.alpha, self.when_full, self.timeout, self.per, self.xoff, self.xon, self.headroom
        )


class DelaysSpec(_Spec):
    """Delays; see :class:`testbed.experiment.network_model.Delays`."""

    link: Time = Field(_DELAYS.link, description="time along a cable")
    switch: Time = Field(_DELAYS.switch, description="time through a switch")


class BpfSpec(_Spec):
    """A congestion control of one's own, for the kernel of an emulation."""

    bpf: str = Field(description="an object file with one, which root alone can change")


class NetworkSpec(_Spec):
    """The network of a simulation or an emulation; see :class:`testbed.experiment.network_model.NetworkModel`."""

    transport: Transport | BpfSpec = Field(
        "window",
        description="how packets are sent: window; dcqcn, dctcp, hpcc or unlimited in a simulation; reno, cubic, "
        "dctcp, mltcp or a program for the kernel in an emulation",
    )
    parameters: dict[str, Factor] = Field({}, description="parameters of the transport by name, in place of its own")
    ecn: EcnSpec = Field(EcnSpec.model_construct(), description="when switches mark packets")
    buffers: BuffersSpec = Field(BuffersSpec.model_construct(), description="buffers of switches")
    load_balancing: LoadBalancing = Field(
        "hash",
        description="paths of packets: hash (as decided), spray (at random), spray-in-turn, flowlet or adaptive",
    )
    flowlet_gap: PositiveTime = Field(
        NetworkModel.flowlet_gap_s, description="how long a flow is silent before its packets may take another path"
    )
    delays: DelaysSpec = Field(DelaysSpec.model_construct(), description="delays of links and switches")
    mtu: Annotated[int, Field(strict=True, ge=SMALLEST_PAYLOAD, le=LARGEST_PAYLOAD)] = Field(
        NetworkModel.mtu, description="payload of a full packet in bytes"
    )

    @field_validator("parameters")
    @classmethod
    def _known(cls, given: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        transport = info.data.get("transport", "window")
        known = tuple(defaults_of(transport)) if isinstance(transport, str) else ()
        for name in given:
            if name not in known:
                shown = transport if isinstance(transport, str) else "bpf"
                raise ValueError(f"transport {shown} has no parameter '{name}', {expectation(name, known)}")
        return given

    @property
    def transport_name(self) -> str:
        """The transport by name; ``bpf`` for one of one's own."""
        return self.transport if isinstance(self.transport, str) else "bpf"

    def congestion(self, gap_s: float) -> Congestion | None:
        """What the kernel of an emulation does; None for windows. ``gap_s``: see :class:`Congestion`."""
        if self.transport == "window":
            return None
        return Congestion(
            self.transport_name,
            self.ecn.packets or MARK_PACKETS,
            self.buffers.packets,
            "" if isinstance(self.transport, str) else self.transport.bpf,
            gap_s if self.transport == "mltcp" else 0.0,
        )

    def value(self) -> NetworkModel:
        """Return it as simulations take it; one that only an emulation has as windows."""
        transport: Transport = "window"
        if isinstance(self.transport, str) and self.transport in SIMULATED:
            transport = self.transport
        return NetworkModel(
            transport,
            {**defaults_of(transport), **self.parameters},
            Ecn(self.ecn.minimum, self.ecn.maximum, self.ecn.probability, self.ecn.rate, self.ecn.packets),
            self.buffers.value(),
            self.load_balancing,
            Delays(self.delays.link, self.delays.switch),
            self.mtu,
            self.flowlet_gap,
        )


def _no_packets(value: object) -> object:
    if value == "packets":
        raise ValueError("'packets' is an engine of its own now, expected max-min or proportional: --engine simulation")
    return value


SharingEntry = Annotated[Sharing, BeforeValidator(_no_packets)]
