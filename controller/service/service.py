"""The controller's operations, carried out on a network of switches.

Knows neither HTTP nor JSON nor OpenFlow, so that it is tested whole on the in-memory network.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from controller.dataplane.network import Network, NetworkError, RuleBatch
from controller.dataplane.planner import ControllerState, PlannedChange, SchedulerFailedError, StateBefore
from controller.dataplane.rules import RuleCount
from controller.dataplane.verification import observed_paths, path_mismatches, path_packets, recounted, rule_mismatches
from controller.decision import LinkDown, LinkUp, Scheduler
from controller.service.messages import (
    Apply,
    CommitAnswer,
    CommitRequest,
    CountedRule,
    DecisionAnswer,
    FabricAnswer,
    JobRequest,
    LinkRequest,
    ObservedPathsAnswer,
    ProfileRequest,
    RulesAnswer,
    StateAnswer,
    ThroughputAnswer,
    ThroughputRequest,
    VerificationAnswer,
)
from topologies.fabric import Fabric

_log = logging.getLogger("controller")


class RequestError(Exception):
    """A request that cannot be served: HTTP ``status`` and one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Service:
    """One scheduler on one network. ``clock`` returns seconds; ``spread``: see :class:`ControllerState`.

    Every method returns what the REST interface answers, or raises :class:`RequestError`. One
    call at a time: the caller holds the lock.
    """

    def __init__(
        self,
        network: Network,
        scheduler: Scheduler,
        levels: int = 8,
        seed: int = 1,
        clock: Callable[[], float] = time.monotonic,
        *,
        spread: bool = False,
    ) -> None:
        self._network = network
        self._scheduler = scheduler
        self._levels = levels
        self._seed = seed
        self._clock = clock
        self._spread = spread
        self._held: ControllerState | None = None

    def put_fabric(self, fabric: Fabric) -> FabricAnswer:
        """Start over on ``fabric``: no jobs, empty tables."""
        try:
            state = ControllerState(fabric, self._scheduler, self._levels, self._seed, spread=self._spread)
        except (ValueError, KeyError, IndexError) as error:
            raise RequestError(400, str(error)) from error
        before, self._held = self._held, state
        try:
            self._network.reset(fabric)
        except NetworkError as error:
            self._held = before
            self._reinstall()
            raise RequestError(504, str(error)) from error
        return FabricAnswer(fabric.name, len(fabric.switches))

    def put_switches(self, switches: Sequence[str]) -> FabricAnswer:
        """Take only ``switches`` as built: nothing is asked of the others until the next fabric."""
        fabric = self._state().fabric
        unknown = next((switch for switch in switches if switch not in fabric.switches), None)
        if unknown is not None:
            raise RequestError(400, f"unknown switch {unknown!a}, expected switches of fabric '{fabric.name}'")
        self._network.expect(frozenset(switches))
        return FabricAnswer(fabric.name, len(self._network.connected()))

    def get_state(self) -> StateAnswer:
        """Return switches, jobs, the decision in force and the flows that wait for a commit."""
        state, connected = self._held, dict(self._network.connected())
        name = self._scheduler.name
        if state is None:
            return StateAnswer(name, None, connected, 0, (), None, ())
        fabric = state.fabric
        return StateAnswer(
            name, fabric.name, connected, len(connected), tuple(state.jobs), state.decision, state.pending
        )

    def post_job(self, request: JobRequest) -> DecisionAnswer:
        """Add a job; see ``docs/reference/controller.md`` for the answer."""
        return self._change(lambda state: state.arrive(request.job, request.apply == "now"))

    def put_job(self, name: str, request: JobRequest) -> DecisionAnswer:
        """Replace a running job by one with other connections; the answer is that of :meth:`post_job`."""
        if request.job.name != name:
            raise RequestError(400, f"job.name is '{request.job.name}', expected '{name}' as in the path")
        return self._change(lambda state: state.reconnected(request.job, request.apply == "now"))

    def delete_job(self, name: str, apply: Apply = "now") -> DecisionAnswer:
        """Remove a job and its rules."""
        return self._change(lambda state: state.depart(name, apply == "now"))

    def post_profile(self, request: ProfileRequest) -> DecisionAnswer:
        """Add a job's measured profile and decide again."""
        return self._change(lambda state: state.profiled(request.job, request.profile, request.apply == "now"))

    def post_link(self, request: LinkRequest) -> DecisionAnswer:
        """Take a cable out of the fabric, or put it back, and decide again."""
        kind = LinkDown if request.state == "down" else LinkUp
        event = kind(request.link, request.others)
        return self._change(lambda state: state.link_changed(event, request.apply == "now"))

    def put_throughput(self, shares: Mapping[str, float]) -> ThroughputAnswer:
        """Store recent iterations per second over those of each job alone, for later decisions."""
        return ThroughputAnswer(dict(self._state().take_throughput(shares)))

    def post_throughput(self, request: ThroughputRequest) -> DecisionAnswer:
        """Store recent iterations per second over those of each job alone, and decide again."""
        return self._change(lambda state: state.throughput_measured(request.throughput, request.apply == "now"))

    def post_commit(self, request: CommitRequest) -> CommitAnswer:
        """Bring the named flows to their decided path and level."""
        started, state = self._clock(), self._state()
        self._all_connected()
        before = state.before()
        try:
            batches = state.commit(request.flows)
        except ValueError as error:
            raise RequestError(404, str(error)) from error
        self._send(batches, state, before)
        return CommitAnswer(True, self._clock() - started)

    def get_rules(self) -> RulesAnswer:
        """Return the rules installed on the switches, read back, with packet counts."""
        rules: dict[str, list[CountedRule]] = {switch: [] for switch in self._network.connected()}
        for count in self._read():
            rules[count.rule.switch].append(CountedRule.of(count))
        return RulesAnswer({switch: tuple(held) for switch, held in rules.items()})

    def get_verification(self, counters: Mapping[str, Mapping[str, int]] | None = None) -> VerificationAnswer:
        """Return where the switches differ from the decision: rules, and paths by the packets counted on them.

        ``counters`` (see :class:`~controller.service.messages.VerificationRequest`) replace those of the switches.
        """
        state, counts = self._state(), self._read()
        if counters is not None:
            counts = recounted(counts, counters)
        expected = [rule for switch in self._network.connected() for rule in state.rules_on(switch).add]
        wrong = rule_mismatches(expected, counts) + path_mismatches(state.data_rules(), counts)
        return VerificationAnswer(wrong, len(expected), path_packets(state.data_rules(), counts))

    def get_observed_paths(self) -> ObservedPathsAnswer:
        """Return the paths that the switches chose, for flows that they hash."""
        state = self._state()
        flows = [flow for flow in state.flows.values() if flow.id in set(state.decision.hashed)]
        return ObservedPathsAnswer(observed_paths(state.fabric, flows, self._read() if flows else ()))

    def rules_on(self, switch: str) -> RuleBatch:
        """Return what ``switch`` must hold now."""
        return RuleBatch() if self._held is None else self._held.rules_on(switch)

    def _state(self) -> ControllerState:
        if self._held is None:
            raise RequestError(409, "no fabric yet: PUT /fabric first")
        return self._held

    def _all_connected(self) -> None:
        away = [switch for switch, there in self._network.connected().items() if not there]
        if away:
            raise RequestError(409, f"switches not connected: {', '.join(away)}")

    def _change(self, plan: Callable[[ControllerState], PlannedChange]) -> DecisionAnswer:
        """Plan a change and carry it out; if it fails, everything is as before."""
        started, state = self._clock(), self._state()
        self._all_connected()
        before = state.before()
        try:
            change = plan(state)
        except KeyError as error:
            raise RequestError(404, str(error.args[0])) from error
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        except SchedulerFailedError as error:
            raise RequestError(500, str(error)) from error
        decided = self._clock() - started
        self._send(change.batches, state, before)
        return DecisionAnswer(change.decision, change.moved, True, decided, self._clock() - started)

    def _send(self, batches: Sequence[RuleBatch], state: ControllerState, before: StateBefore) -> None:
        """Carry ``batches`` out, all or none: where one fails, state and switches go back to ``before``."""
        sent = []
        try:
            for batch in batches:
                sent.append(batch)
                self._network.apply(batch)
        except Exception as error:
            for batch in state.go_back(before, sent):
                self._apply_where_connected(batch)
            if isinstance(error, NetworkError):
                raise RequestError(504, str(error)) from error
            raise

    def _reinstall(self) -> None:
        """Give the connected switches everything that they must hold."""
        for switch in self._held.fabric.switches if self._held is not None else ():
            self._apply_where_connected(self.rules_on(switch))

    def _apply_where_connected(self, batch: RuleBatch) -> None:
        """Apply it to the switches that are there: the others get all their rules when they connect again."""
        try:
            self._network.apply(batch.on([name for name, there in self._network.connected().items() if there]))
        except NetworkError as error:
            _log.warning("while undoing a change: %s", error)

    def _read(self) -> Sequence[RuleCount]:
        try:
            return self._network.read()
        except NetworkError as error:
            raise RequestError(504, str(error)) from error
