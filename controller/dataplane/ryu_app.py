"""The Ryu application: connected switches as a :class:`controller.dataplane.network.Network`. Thin."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.dataplane import openflow
from controller.dataplane.network import NetworkError, RuleBatch
from controller.dataplane.rules import RuleCount
from controller.dataplane.ryu_compat import App, handler, hub, ofp_event, ofproto_v1_3
from topologies.addressing import datapath_id
from topologies.fabric import Fabric

CONFIRM_TIMEOUT_S = 10.0

_log = logging.getLogger("controller")


class SwitchNetwork:
    """The switches that are connected, by name once the fabric is known.

    Messages for one switch leave as one buffer, for all switches before the first reply is awaited.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._datapaths: dict[int, Any] = {}
        self._replies: dict[tuple[int, int], Any] = {}
        self._errors: list[str] = []

    def reset(self, fabric: Fabric) -> None:
        """Name the switches by the datapath ids of ``fabric`` and empty those that are there."""
        self._names = {datapath_id(fabric, switch): switch for switch in fabric.switches}
        there = {name: openflow.wipe(datapath) for name, datapath in self._by_name().items()}
        self._confirm(there)

    def connected(self) -> Mapping[str, bool]:
        """Switch name -> whether it is connected."""
        return {name: dpid in self._datapaths for dpid, name in self._names.items()}

    def apply(self, batch: RuleBatch) -> None:
        """Send ``batch`` and wait for a barrier reply of every switch in it."""
        datapaths = self._by_name()
        away = sorted(batch.switches - datapaths.keys())
        if away:
            raise NetworkError(f"switches not connected: {', '.join(away)}")
        self._confirm(_messages(datapaths, batch))

    def read(self) -> Sequence[RuleCount]:
        """Ask every connected switch for its flow entries."""
        datapaths = self._by_name()
        waiting = {
            name: self._send(name, datapath, [openflow.stats_request(datapath)]) for name, datapath in datapaths.items()
        }
        counts: list[RuleCount] = []
        for name, key in waiting.items():
            counts += openflow.read_stats(name, self._await(name, key))
        return counts

    def joined(self, datapath: Any) -> str | None:
        """Note that ``datapath`` has connected; return its name if the fabric knows it."""
        self._datapaths[datapath.id] = datapath
        return self._names.get(datapath.id)

    def left(self, datapath: Any) -> None:
        """Note that ``datapath`` has gone, unless a newer connection of the same switch has replaced it."""
        self._datapaths = {dpid: held for dpid, held in self._datapaths.items() if held is not datapath}

    def restore(self, switch: str, batch: RuleBatch) -> None:
        """Empty ``switch`` and give it what it must hold."""
        datapath = self._by_name().get(switch)
        if datapath is not None:
            messages = _messages({switch: datapath}, batch).get(switch, [])
            self._confirm({switch: [*openflow.wipe(datapath), *messages]})

    def replied(self, message: Any, body: Sequence[Any] = (), last: bool = True) -> None:
        """Pass a reply to the caller that waits for it."""
        key = (message.datapath.id, message.xid)
        waiting = self._replies.get(key)
        if waiting is not None:
            waiting.put((list(body), last))

    def refused(self, message: Any) -> None:
        """Note an OpenFlow error: the change under way is not confirmed."""
        name = self._names.get(message.datapath.id, f"{message.datapath.id}")
        self._errors.append(f"switch {name} refused: OpenFlow error type {message.type} code {message.code}")

    def _by_name(self) -> dict[str, Any]:
        return {self._names[dpid]: datapath for dpid, datapath in self._datapaths.items() if dpid in self._names}

    def _confirm(self, messages: Mapping[str, Sequence[Any]]) -> None:
        self._errors.clear()
        datapaths = self._by_name()
        waiting = {
            name: self._send(name, datapaths[name], [*wanted, openflow.barrier(datapaths[name])])
            for name, wanted in messages.items()
        }
        for name, key in waiting.items():
            self._await(name, key)
        if self._errors:
            raise NetworkError(self._errors[0])

    def _send(self, name: str, datapath: Any, messages: Sequence[Any]) -> tuple[int, int]:
        """Send ``messages`` as one buffer and return the key of the reply to the last one."""
        buffer = bytearray()
        for message in messages:
            datapath.set_xid(message)
            message.serialize()
            buffer += message.buf
        key = (datapath.id, messages[-1].xid)
        self._replies[key] = hub.Queue()
        if not datapath.send(bytes(buffer)):
            del self._replies[key]
            raise NetworkError(f"switch {name} is going away")
        return key

    def _await(self, name: str, key: tuple[int, int]) -> list[Any]:
        body: list[Any] = []
        try:
            last = False
            while not last:
                part, last = self._replies[key].get(timeout=CONFIRM_TIMEOUT_S)
                body += part
        except hub.QueueEmpty as error:
            raise NetworkError(f"switch {name} did not confirm within {CONFIRM_TIMEOUT_S:g} s") from error
        finally:
            del self._replies[key]
        return body


def _messages(datapaths: Mapping[str, Any], batch: RuleBatch) -> dict[str, list[Any]]:
    """Switch -> messages, in the order in which one switch must carry them out."""
    messages: dict[str, list[Any]] = {}
    for group in batch.groups:
        messages.setdefault(group.switch, []).append(openflow.add_group(datapaths[group.switch], group))
    for rule in batch.add:
        messages.setdefault(rule.switch, []).append(openflow.add_rule(datapaths[rule.switch], rule))
    for rule in batch.delete:
        messages.setdefault(rule.switch, []).append(openflow.delete_rule(datapaths[rule.switch], rule))
    return messages


class ControllerApp(App):  # type: ignore[misc]
    """Passes OpenFlow events to the network, and installs the rules of ``rules_on`` on switches that connect."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(
        self, *args: Any, network: SwitchNetwork, rules_on: Callable[[str], RuleBatch], lock: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._network, self._rules_on, self._lock = network, rules_on, lock

    @handler.set_ev_cls(ofp_event.EventOFPStateChange, [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])  # type: ignore[untyped-decorator]
    def _state_changed(self, event: Any) -> None:
        if event.state == handler.DEAD_DISPATCHER:
            self._network.left(event.datapath)
            return
        name = self._network.joined(event.datapath)
        if name is not None:
            # Not here: the replies it waits for arrive through this very handler loop.
            hub.spawn(self._restore, name)

    def _restore(self, switch: str) -> None:
        with self._lock:
            try:
                self._network.restore(switch, self._rules_on(switch))
            except NetworkError as error:
                _log.warning("%s", error)

    @handler.set_ev_cls(ofp_event.EventOFPBarrierReply, handler.MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def _barrier(self, event: Any) -> None:
        self._network.replied(event.msg)

    @handler.set_ev_cls(ofp_event.EventOFPFlowStatsReply, handler.MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def _stats(self, event: Any) -> None:
        more = event.msg.flags & event.msg.datapath.ofproto.OFPMPF_REPLY_MORE
        self._network.replied(event.msg, event.msg.body, last=not more)

    @handler.set_ev_cls(ofp_event.EventOFPErrorMsg, handler.MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def _error(self, event: Any) -> None:
        self._network.refused(event.msg)
