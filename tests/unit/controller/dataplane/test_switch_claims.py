"""A datapath id belongs to one connection as long as that lives; what another connection says counts for nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from controller.dataplane import ryu_app
from controller.dataplane.network import NetworkError, RuleBatch
from controller.dataplane.rules import Actions, FlowRule, Match
from controller.dataplane.ryu_app import ControllerApp, SwitchNetwork
from controller.dataplane.ryu_compat import handler, hub, ofproto_protocol, ofproto_v1_3
from topologies.addressing import datapath_id
from topologies.fabric import Fabric

SWITCH = "tor0"


class Datapath(ofproto_protocol.ProtocolDesc):  # type: ignore[misc]
    """A connection of a switch. It answers barriers, unless ``silent``."""

    def __init__(self, network: SwitchNetwork, identity: int, silent: bool = False) -> None:
        super().__init__(ofproto_v1_3.OFP_VERSION)
        self.id, self.state, self.silent = identity, handler.MAIN_DISPATCHER, silent
        self.sent: list[bytes] = []
        self._network, self._xid = network, 0

    def set_xid(self, message: Any) -> None:
        self._xid += 1
        message.set_xid(self._xid)

    def send(self, buffer: bytes) -> bool:
        self.sent.append(buffer)
        if not self.silent:
            self.reply(self._xid)
        return True

    def reply(self, xid: int) -> None:
        self._network.replied(SimpleNamespace(datapath=self, xid=xid))

    def close(self) -> None:
        self.state = handler.DEAD_DISPATCHER


@pytest.fixture
def network(small_fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> SwitchNetwork:
    monkeypatch.setattr(ryu_app, "CONFIRM_TIMEOUT_S", 0.05)
    monkeypatch.setattr(ryu_app, "CONFIRM_S_PER_MESSAGE", 0.0)
    monkeypatch.setattr(ryu_app, "LEAVING_S", 0.05)
    made = SwitchNetwork()
    made.reset(small_fabric)
    return made


@pytest.fixture
def identity(small_fabric: Fabric) -> int:
    return datapath_id(small_fabric, SWITCH)


@pytest.fixture
def app(network: SwitchNetwork) -> ControllerApp:
    return ControllerApp(network=network, rules_on=lambda switch: RuleBatch(), lock=hub.Semaphore(1))


def a_rule() -> RuleBatch:
    rule = FlowRule(SWITCH, 100, Match("10.0.0.1", "10.0.2.1", 20000, 5000), Actions(output=1), 7)
    return RuleBatch(add=(rule,))


def test_a_second_connection_with_a_live_id_is_refused_and_logged(
    network: SwitchNetwork, app: ControllerApp, identity: int, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Datapath(network, identity), Datapath(network, identity)
    with caplog.at_level(logging.WARNING):
        app._admit(first)
        app._admit(second)
    assert (first.state, second.state) == (handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER)
    assert [record.getMessage() for record in caplog.records] == [
        f"refused a second switch with datapath id {identity:016x}, which is connected"
    ]
    network.left(second)
    assert network.connected()[SWITCH]
    first.sent.clear()
    network.apply(a_rule())
    assert first.sent and not second.sent


def test_a_switch_that_connects_again_takes_its_place(
    network: SwitchNetwork, app: ControllerApp, identity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Datapath(network, identity), Datapath(network, identity)
    app._admit(first)
    monkeypatch.setattr(hub, "sleep", lambda seconds: network.left(first))  # the end of the first is heard meanwhile
    app._admit(second)
    assert second.state == handler.MAIN_DISPATCHER and network.connected()[SWITCH]
    assert second.sent, "it got its rules"


def test_a_connection_that_ends_while_it_joins_is_no_switch(
    network: SwitchNetwork, app: ControllerApp, identity: int
) -> None:
    gone = Datapath(network, identity)
    gone.close()
    app._admit(gone)
    assert not network.connected()[SWITCH] and not gone.sent


def test_a_refused_connection_confirms_nothing(network: SwitchNetwork, identity: int) -> None:
    silent, liar = Datapath(network, identity, silent=True), Datapath(network, identity)
    assert network.join(silent) and not network.join(liar)

    def send(buffer: bytes) -> bool:
        for xid in range(10):
            liar.reply(xid)
        return True

    silent.send = send  # type: ignore[method-assign]
    with pytest.raises(NetworkError, match=r"^switch tor0 did not confirm within 0\.05 s$"):
        network.apply(a_rule())


def test_a_refused_connection_makes_no_change_fail(network: SwitchNetwork, identity: int) -> None:
    switch, liar = Datapath(network, identity), Datapath(network, identity)
    assert network.join(switch) and not network.join(liar)
    answer = switch.send

    def send(buffer: bytes) -> bool:
        network.refused(SimpleNamespace(datapath=liar, type=1, code=1))
        return answer(buffer)

    switch.send = send  # type: ignore[method-assign]
    network.apply(a_rule())


def test_all_switches_that_do_not_confirm_are_named_and_have_to_connect_again(
    network: SwitchNetwork, small_fabric: Fabric
) -> None:
    switches: Sequence[str] = list(small_fabric.switches)
    connections = {name: Datapath(network, datapath_id(small_fabric, name), silent=name != "agg0") for name in switches}
    assert all(network.join(connection) for connection in connections.values())
    away = ", ".join(name for name in switches if name != "agg0")
    with pytest.raises(NetworkError, match=f"^switch {away} did not confirm"):
        network.reset(small_fabric)
    assert [name for name, there in network.connected().items() if there] == ["agg0"]
    assert network._replies == {}
