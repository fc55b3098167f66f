"""The controller's operations: JSON in, JSON out, carried out on a network of switches.

Knows neither HTTP nor OpenFlow, so that it is tested whole on the in-memory network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.dataplane.network import Network, NetworkError, RuleBatch
from controller.dataplane.planner import ControllerState, PlannedChange, SchedulerFailedError
from controller.dataplane.verification import path_mismatches, path_packets, rule_mismatches, taken_paths
from controller.decision import Measured, Scheduler
from controller.service.json_codec import decode, encode, fabric_from_json, job_from_json

APPLY = ("now", "prepare")

Answer = dict[str, Any]


class RequestError(Exception):
    """A request that cannot be served: HTTP ``status`` and one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Service:
    """One scheduler on one network. ``clock`` returns seconds.

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
    ) -> None:
        self._network = network
        self._scheduler = scheduler
        self._levels = levels
        self._seed = seed
        self._clock = clock
        self._held: ControllerState | None = None

    def put_fabric(self, body: object) -> Answer:
        """Start over on the fabric of ``body``: no jobs, empty tables."""
        try:
            fabric = fabric_from_json(body)
            state = ControllerState(fabric, self._scheduler, self._levels, self._seed)
        except (ValueError, KeyError, IndexError) as error:
            raise RequestError(400, str(error)) from error
        self._held = state
        self._network.reset(fabric)
        return {"fabric": fabric.name, "expected": len(fabric.switches)}

    def get_state(self) -> Answer:
        """Return switches, jobs, the decision in force and the flows that wait for a commit."""
        state, connected = self._held, dict(self._network.connected())
        return {
            "scheduler": self._scheduler.name,
            "fabric": None if state is None else state.fabric.name,
            "switches": connected,
            "expected": 0 if state is None else len(state.fabric.switches),
            "jobs": [] if state is None else list(state.jobs),
            "decision": None if state is None else encode(state.decision),
            "pending": [] if state is None else list(state.pending),
        }

    def post_job(self, body: object) -> Answer:
        """Add a job; see ``docs/controller.md`` for the body and the answer."""
        started, state = self._clock(), self._state()
        given = _object(body, {"job", "apply"})
        move = _moves_now(given.get("apply", "now"))
        self._all_connected()
        try:
            job = job_from_json(given.get("job"))
            return self._carry_out(state.arrive(job, move), started)
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        except SchedulerFailedError as error:
            raise RequestError(500, str(error)) from error

    def delete_job(self, name: str, apply: str = "now") -> Answer:
        """Remove a job and its rules."""
        started, state = self._clock(), self._state()
        move = _moves_now(apply)
        self._all_connected()
        try:
            return self._carry_out(state.depart(name, move), started)
        except KeyError as error:
            raise RequestError(404, str(error.args[0])) from error
        except SchedulerFailedError as error:
            raise RequestError(500, str(error)) from error

    def post_profile(self, body: object) -> Answer:
        """Take in a job's measured profile and decide anew."""
        started, state = self._clock(), self._state()
        given = _object(body, {"job", "profile", "apply"})
        move = _moves_now(given.get("apply", "now"))
        self._all_connected()
        try:
            measured = decode(Measured, given.get("profile"), "profile")
            return self._carry_out(state.profiled(str(given.get("job")), measured, move), started)
        except KeyError as error:
            raise RequestError(404, str(error.args[0])) from error
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        except SchedulerFailedError as error:
            raise RequestError(500, str(error)) from error

    def put_throughput(self, body: object) -> Answer:
        """Take in recent iterations per second over those of each job alone, for the decisions to come."""
        state = self._state()
        try:
            shares = decode(dict[str, float], body, "throughput")
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        return {"throughput": dict(state.take_throughput(shares))}

    def post_commit(self, body: object) -> Answer:
        """Bring the named flows to their decided path and level."""
        started, state = self._clock(), self._state()
        flows = _object(body, {"flows"}).get("flows")
        if not isinstance(flows, list) or not all(isinstance(flow, str) for flow in flows):
            raise RequestError(400, "'flows' must be an array of flow ids")
        self._all_connected()
        try:
            batches = state.commit(flows)
        except ValueError as error:
            raise RequestError(404, str(error)) from error
        self._send(batches)
        return {"confirmed": True, "elapsed_s": self._clock() - started}

    def get_rules(self) -> Answer:
        """Return what the switches hold, read back: switch -> rules with packet counts."""
        state = self._state()
        rules: dict[str, list[Answer]] = {switch: [] for switch in state.fabric.switches}
        for count in self._read():
            rules[count.rule.switch].append({**encode(count.rule), "packets": count.packets})
        return {"rules": rules}

    def get_check(self) -> Answer:
        """Return what on the switches is not as decided: rules, and paths by the packets counted on them.

        ``packets``: flow -> how many its rules counted, switch by switch along its path.
        """
        state, counts = self._state(), self._read()
        expected = [rule for switch in state.fabric.switches for rule in state.rules_on(switch).add]
        wrong = rule_mismatches(expected, counts) + path_mismatches(state.data_rules(), counts)
        packets = path_packets(state.data_rules(), counts)
        return {"mismatches": list(wrong), "rules": len(expected), "packets": packets}

    def get_taken(self) -> Answer:
        """Return flow -> path that the switches chose (null: no packet yet), for flows that they hash."""
        state = self._state()
        flows = [flow for flow in state.flows.values() if flow.id in set(state.decision.hashed)]
        return {"taken": encode(taken_paths(state.fabric, flows, self._read() if flows else ()))}

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

    def _carry_out(self, change: PlannedChange, started: float) -> Answer:
        decided = self._clock() - started
        self._send(change.batches)
        return {
            "decision": encode(change.decision),
            "changes": [encode(moved) for moved in change.moved],
            "confirmed": True,
            "decided_s": decided,
            "elapsed_s": self._clock() - started,
        }

    def _send(self, batches: Sequence[RuleBatch]) -> None:
        try:
            for batch in batches:
                self._network.apply(batch)
        except NetworkError as error:
            raise RequestError(504, str(error)) from error

    def _read(self) -> Sequence[Any]:
        try:
            return self._network.read()
        except NetworkError as error:
            raise RequestError(504, str(error)) from error


def _object(body: object, known: set[str]) -> Mapping[str, object]:
    if not isinstance(body, dict):
        raise RequestError(400, "the body must be a JSON object")
    unknown = sorted(body.keys() - known)
    if unknown:
        raise RequestError(400, f"unknown key '{unknown[0]}', expected {', '.join(sorted(known))}")
    return body


def _moves_now(apply: object) -> bool:
    if apply not in APPLY:
        raise RequestError(400, f"apply must be now or prepare, not '{apply}'")
    return apply == "now"
