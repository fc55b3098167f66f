"""From an experiment to the state that a simulation at line rate begins with: nothing under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from testbed.engines.flow.networks.records import columns, records
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.experiment.network_model import NetworkModel
from testbed.rdma import state as kinds
from testbed.rdma.balancing import BALANCING
from testbed.rdma.simulate import others
from testbed.rdma.state import GO_BACK_N, NONE, PAUSES, WHEN_FULL, Counters, Records, Rules, Stamps, State
from testbed.rdma.transports.dispatch import HPCC, TRANSPORTS
from topologies.fabric import NETWORK_KINDS
from topologies.shaping import DEFAULT_LEVELS

HEADERS: Final = 82
"""Bytes on the wire beside the payload: preamble and gap 20, Ethernet 18, IPv4 20, UDP 8, BTH 12, ICRC 4."""
FIRST_ROOM: Final = 64
"""Flows and packets at first."""
_FIRST_PAUSES: Final = 64
"""Room for so many pauses and their ends on their way, at first."""
_RESUME_PACKETS: Final = 2
"""A queue goes on when it holds so many full packets less than at the pause."""
_HEADROOM_PACKETS: Final = 3
"""Full packets that come in beside those on the cable: the one that asks for the pause, the one that the other end is
sending when it hears of it, and the one before that."""


def first_state(
    names: Sequence[str], capacity: Mapping[str, float], experiment: Experiment, model: NetworkModel
) -> State:
    """The state of a network of links ``names``, of ``capacity`` in bit/s.

    ``RunFailedError`` if its buffers have no room for a packet, or for those that are under way when a port pauses.
    """
    rules, links = _rules(experiment, model), _links(names, capacity, experiment, model)
    _check_buffers(rules, links, names, model)
    room, telemetry = FIRST_ROOM, FIRST_ROOM if rules.transport == HPCC else 1
    counters = Counters(*(np.zeros(1, np.int64) for _ in Counters._fields))
    counters.unused[0], counters.random[0] = room, 1 + experiment.seed % 1_000_003
    state = State(
        flows=records(room, kinds.FLOW),
        links=links,
        packets=records(room, kinds.PACKET),
        pools=_pools(links, model.buffers.size),
        queues=_queues(len(names), DEFAULT_LEVELS),
        agenda=records(0, kinds.EVENT),
        stamps=Stamps(*(np.zeros((telemetry, 1)) for _ in range(3))),
        seen=Stamps(*(np.zeros((telemetry, 1)) for _ in range(3))),
        rules=rules,
        parameters=np.array([*model.parameters.values(), 0.0]),
        paths=np.full((1, 1), NONE),
        unused=np.arange(room, dtype=np.int32),
        reached=np.zeros(2 * room, np.int64),
        counters=counters,
    )
    return state._replace(agenda=records(others(state) + _FIRST_PAUSES, kinds.EVENT))


def _rules(experiment: Experiment, model: NetworkModel) -> Rules:
    """Cards go back where nothing is ever dropped, too, if cables lose packets."""
    scale = experiment.scale
    payload, header = float(scale.unscale_size(model.mtu)), float(scale.unscale_size(HEADERS))
    buffers = model.buffers
    xoff = buffers.xoff or 0.0
    return Rules(
        payload=payload,
        header=header,
        transport=TRANSPORTS[model.transport],
        balancing=BALANCING[model.load_balancing],
        marked=model.ecn.probability,
        alpha=buffers.alpha,
        xoff=xoff,
        resume=_RESUME_PACKETS * (payload + header) if buffers.xon is None else xoff - buffers.xon,
        flowlet_s=model.flowlet_gap_s,
        when_full=WHEN_FULL[buffers.when_full],
        recovery=GO_BACK_N
        if experiment.loses_packets and buffers.when_full == "pause"
        else WHEN_FULL[buffers.when_full],
        timeout_s=buffers.timeout_s,
    )


def _queues(links: int, levels: int) -> Records:
    queues = records(links * levels, kinds.QUEUE, first=NONE, last=NONE, first_ready=NONE, last_ready=NONE)
    return queues.reshape(levels, links).T  # most traffic is on one level


def _pools(links: Records, size: float) -> Records:
    of_links = columns(links)
    last = max(0, np.asarray(of_links["pool_before"]).max(), np.asarray(of_links["pool_behind"]).max())
    return records(1 + int(last), kinds.POOL, capacity=size)


def _links(names: Sequence[str], capacity: Mapping[str, float], experiment: Experiment, model: NetworkModel) -> Records:
    fabric, headers = experiment.fabric, 1.0 + HEADERS / model.mtu
    switches = {switch: number for number, switch in enumerate(fabric.switches)}
    links = records(len(names), kinds.LINK)
    for number, (record, name) in enumerate(zip(links, names, strict=True)):
        link = fabric.links[name]
        record.rate = capacity[name] / 8 * headers
        record.delay = model.delays.link if link.kind in NETWORK_KINDS else 0.0
        record.first_wire = NONE
        record.source, record.target = switches.get(link.source, NONE), switches.get(link.target, NONE)
        own = model.buffers.per == "port"
        record.pool_before, record.pool_behind = (number, number) if own else (record.source, record.target)
        if record.target != NONE:
            record.delay += model.delays.switch
        if model.ecn.packets is None:
            record.mark_from = model.ecn.minimum * capacity[name] / model.ecn.rate
            record.mark_to = model.ecn.maximum * capacity[name] / model.ecn.rate
        else:
            packet = experiment.scale.unscale_size(model.mtu + HEADERS)
            record.mark_from = record.mark_to = (model.ecn.packets - 0.5) * packet
    return links


def _check_buffers(rules: Rules, links: Records, names: Sequence[str], model: NetworkModel) -> None:
    """Raise ``RunFailedError`` if some buffer is too small for what must be in it."""
    packet, buffers = rules.payload + rules.header, model.buffers
    if packet > buffers.size:
        raise RunFailedError(
            f"network.buffers.size is {buffers.size:g} bytes, expected room for a packet, which takes {packet:g} "
            "at this scale.bandwidth"
        )
    if rules.when_full != PAUSES or buffers.headroom is None:
        return
    for record, name in zip(links, names, strict=True):
        needed = 2.0 * record.delay * record.rate + _HEADROOM_PACKETS * packet
        if record.target != NONE and buffers.headroom < needed:
            raise RunFailedError(
                f"network.buffers.headroom is {buffers.headroom:g} bytes, expected at least {needed:.0f}: so much is "
                f"under way on {name} when a pause is asked for, at this scale.bandwidth"
            )
