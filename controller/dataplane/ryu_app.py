"""The Ryu application: connected switches as a :class:`controller.dataplane.network.Network`. Thin."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from controller.dataplane import openflow
from controller.dataplane.network import NetworkError, RuleBatch
from controller.dataplane.rules import RuleCount
from controller.dataplane.ryu_compat import App, handler, hub, ofp_event, ofproto_v1_3
from topologies.addressing import datapath_id
from topologies.fabric import Fabric

T = TypeVar("T")

CONFIRM_TIMEOUT_S = 10.0
CONFIRM_S_PER_MESSAGE = 0.0005
"""Open vSwitch takes 0.3 ms for a rule on a quiet machine, and
all switches of a run are one process: an all-to-all of a hundred hosts has 80,000 rules."""
MESSAGES_AT_ONCE = 500
"""So many take some 0.1 s to make; between them others are served. A switch gives up a controller that does not answer
its echo for five seconds."""
LEAVING_S = 1.0
"""A switch that connects again may be heard before the end of its old connection."""

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
        self._rules = 0
        """Added so far: a switch may hold as many."""

    def reset(self, fabric: Fabric) -> None:
        """Name the switches by the datapath ids of ``fabric`` and empty those that are there."""
        before = self._names
        self._names = {datapath_id(fabric, switch): switch for switch in fabric.switches}
        try:
            datapaths = self._by_name()
            self._confirm(datapaths, {name: openflow.wipe(datapath) for name, datapath in datapaths.items()})
        except NetworkError:
            self._names = before
            raise

    def expect(self, switches: Collection[str]) -> None:
        """Wait for, read and change only ``switches``: the others are not built."""
        self._names = {dpid: name for dpid, name in self._names.items() if name in switches}

    def connected(self) -> Mapping[str, bool]:
        """Switch name -> whether it is connected."""
        return {name: dpid in self._datapaths for dpid, name in self._names.items()}

    def apply(self, batch: RuleBatch) -> None:
        """Send ``batch`` and wait for a barrier reply of every switch in it."""
        datapaths = self._by_name()
        away = sorted(batch.switches - datapaths.keys())
        if away:
            raise NetworkError(f"switches not connected: {', '.join(away)}")
        self._rules += len(batch.add)
        self._confirm(datapaths, _messages(datapaths, batch))

    def read(self) -> Sequence[RuleCount]:
        """Ask every connected switch for its flow entries."""
        datapaths = self._by_name()
        requests = {name: [openflow.stats_request(datapath)] for name, datapath in datapaths.items()}
        patience_s = _patience_s(self._rules)
        bodies, silent = self._ask(datapaths, requests, patience_s)
        if silent:
            raise NetworkError(_silence(silent, patience_s))
        return [count for name, body in bodies.items() for count in openflow.read_stats(name, body)]

    def join(self, datapath: Any) -> bool:
        """Take ``datapath`` as the switch of its id; False if another connection has that id."""
        return bool(self._datapaths.setdefault(datapath.id, datapath) is datapath)

    def name_of(self, datapath: Any) -> str | None:
        """The name of ``datapath``, if the fabric knows its id."""
        return self._names.get(datapath.id)

    def left(self, datapath: Any) -> None:
        """Note that ``datapath`` has gone, unless it never was the switch of its id."""
        identity = datapath.id
        if self._datapaths.get(identity) is datapath:
            del self._datapaths[identity]

    def restore(self, switch: str, batch: RuleBatch) -> None:
        """Empty ``switch`` and give it what it must hold."""
        datapath = self._by_name().get(switch)
        if datapath is not None:
            messages = _messages({switch: datapath}, batch).get(switch, [])
            self._confirm({switch: datapath}, {switch: [*openflow.wipe(datapath), *messages]})

    def replied(self, message: Any, body: Sequence[Any] = (), last: bool = True) -> None:
        """Pass a reply to the caller that waits for it."""
        waiting = self._replies.get((message.datapath.id, message.xid)) if self._speaks(message) else None
        if waiting is not None:
            waiting.put((list(body), last))

    def refused(self, message: Any) -> None:
        """Note an OpenFlow error: the change under way is not confirmed."""
        if not self._speaks(message):
            return
        name = self._names.get(message.datapath.id, f"{message.datapath.id}")
        self._errors.append(f"switch {name} refused: OpenFlow error type {message.type} code {message.code}")

    def _speaks(self, message: Any) -> bool:
        """Whether ``message`` comes from the connection that was taken as the switch of its id."""
        return self._datapaths.get(message.datapath.id) is message.datapath

    def _by_name(self) -> dict[str, Any]:
        held = list(self._datapaths.items())  # other threads let switches come and go
        return {self._names[dpid]: datapath for dpid, datapath in held if dpid in self._names}

    def _confirm(self, datapaths: Mapping[str, Any], messages: Mapping[str, Sequence[Any]]) -> None:
        self._errors.clear()
        requests = {name: [*wanted, openflow.barrier(datapaths[name])] for name, wanted in messages.items()}
        patience_s = _patience_s(sum(len(wanted) for wanted in requests.values()))
        _, silent = self._ask(datapaths, requests, patience_s)
        for name in silent:
            datapaths[name].close()  # nobody knows what it holds: it gets all its rules when it connects again
            self.left(datapaths[name])
        if silent:
            raise NetworkError(_silence(silent, patience_s))
        if self._errors:
            raise NetworkError(self._errors[0])

    def _ask(
        self, datapaths: Mapping[str, Any], requests: Mapping[str, Sequence[Any]], patience_s: float
    ) -> tuple[dict[str, list[Any]], list[str]]:
        """Send all ``requests``, then wait: the answer of each switch, and the switches that gave none in time."""
        waiting: dict[str, tuple[int, int]] = {}
        try:
            for name, messages in requests.items():
                waiting[name] = self._send(name, datapaths[name], messages)
            deadline = time.monotonic() + patience_s
            bodies = {name: self._await(key, deadline) for name, key in waiting.items()}
        finally:
            for key in waiting.values():
                self._replies.pop(key, None)
        answered = {name: body for name, body in bodies.items() if body is not None}
        return answered, [name for name, body in bodies.items() if body is None]

    def _send(self, name: str, datapath: Any, messages: Sequence[Any]) -> tuple[int, int]:
        """Send ``messages`` as one buffer and return the key of the reply to the last one."""
        buffer = bytearray()
        for message in _in_turns(messages):
            datapath.set_xid(message)
            message.serialize()
            buffer += message.buf
        key = (datapath.id, messages[-1].xid)
        self._replies[key] = hub.Queue()
        if not datapath.send(bytes(buffer)):
            del self._replies[key]
            raise NetworkError(f"switch {name} is going away")
        return key

    def _await(self, key: tuple[int, int], deadline: float) -> list[Any] | None:
        """All parts of a reply; None if the last one does not come before ``deadline``."""
        body: list[Any] = []
        last = False
        while not last:
            try:
                part, last = self._replies[key].get(timeout=max(0.001, deadline - time.monotonic()))
            except hub.QueueEmpty:
                return None
            body += part
        return body


def _patience_s(messages: int) -> float:
    return CONFIRM_TIMEOUT_S + CONFIRM_S_PER_MESSAGE * messages


def _silence(switches: Sequence[str], waited_s: float) -> str:
    return f"switch {', '.join(switches)} did not confirm within {waited_s:.3g} s"


def _in_turns(items: Sequence[T]) -> Iterator[T]:
    """``items``, with turns for the hub's other threads between them."""
    for number, item in enumerate(items):
        if number % MESSAGES_AT_ONCE == MESSAGES_AT_ONCE - 1:
            hub.sleep(0)
        yield item


def _messages(datapaths: Mapping[str, Any], batch: RuleBatch) -> dict[str, list[Any]]:
    """Switch -> messages, in the order in which one switch must carry them out."""
    messages: dict[str, list[Any]] = {}
    for group in batch.groups:
        # A change that was undone may have left it behind; no flow uses a group that is to be added.
        for group_mod in (openflow.delete_group, openflow.add_group):
            messages.setdefault(group.switch, []).append(group_mod(datapaths[group.switch], group))
    for rule in _in_turns(batch.add):
        messages.setdefault(rule.switch, []).append(openflow.add_rule(datapaths[rule.switch], rule))
    for rule in _in_turns(batch.delete):
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
        # Not here: the replies it waits for arrive through this very handler loop.
        hub.spawn(self._admit, event.datapath)

    def _admit(self, datapath: Any) -> None:
        """Take ``datapath`` as the switch of its id, unless another one is that switch and stays connected."""
        deadline = time.monotonic() + LEAVING_S
        while not self._network.join(datapath):
            if time.monotonic() > deadline:
                _log.warning("refused a second switch with datapath id %016x, which is connected", datapath.id)
                datapath.close()
                return
            hub.sleep(0.05)
        if datapath.state == handler.DEAD_DISPATCHER:  # it left while it was joining
            self._network.left(datapath)
            return
        name = self._network.name_of(datapath)
        if name is not None:
            self._restore(name)

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
