"""Requests to the controller and its answers, as values.

:mod:`controller.service.rest` turns a body into a request and an answer into JSON; a Python client decodes the JSON
into the same answer. The fields are the keys of the JSON (``docs/reference/controller.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

from controller.dataplane.planner import FlowChange
from controller.dataplane.rules import Actions, Match, RuleCount
from controller.decision import Decision, Measured
from controller.service.consistency import check_job_name, check_measured
from controller.service.json_codec import decode, job_from_json
from topologies.fabric import Path
from workloads.job import Job

Apply = Literal["now", "prepare"]
"""When running flows move: all at once (now), or each at its commit (prepare)."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job arrives."""

    job: Job
    apply: Apply = "now"


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The measured profile of the job named ``job``."""

    job: str
    profile: Measured
    apply: Apply = "now"


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """A cable, named by either of its links, has failed (``down``) or works again (``up``), with ``others`` at once."""

    link: str
    state: Literal["down", "up"]
    apply: Apply = "now"
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Flows to move to their decided path and level; their senders are paused."""

    flows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """Packets counted where they are really forwarded, for switches that only hold the rules.

    ``counters``: switch -> five-tuple, such as ``10.0.0.1:61000 > 10.0.2.1:5000`` -> packets.
    """

    counters: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class ThroughputRequest:
    """Recent throughput, as in :class:`ThroughputAnswer`, upon which all is decided again."""

    throughput: Mapping[str, float]
    apply: Apply = "now"


@dataclass(frozen=True, slots=True)
class FabricAnswer:
    """The fabric has been accepted; ``expected`` is the number of its switches."""

    fabric: str
    expected: int


@dataclass(frozen=True, slots=True)
class StateAnswer:
    """The controller's state. ``switches``: name -> whether it is connected; ``pending``: flows that wait for a commit.

    Without a fabric, ``fabric`` and ``decision`` are None.
    """

    scheduler: str
    fabric: str | None
    switches: Mapping[str, bool]
    expected: int
    jobs: tuple[str, ...]
    decision: Decision | None
    pending: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """A decision that the switches have confirmed, and the flows of running jobs that it moves (``changes``).

    ``decided_s`` and ``elapsed_s``: seconds from the request to the plan, and to the last confirmation.
    """

    decision: Decision
    changes: tuple[FlowChange, ...]
    confirmed: bool
    decided_s: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """The switches have confirmed a commit, ``elapsed_s`` seconds after the request."""

    confirmed: bool
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class ThroughputAnswer:
    """The shares that were stored: job -> recent iterations per second over those of the job alone."""

    throughput: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CountedRule:
    """A rule installed on a switch, and the packets it has matched."""

    switch: str
    priority: int
    match: Match
    actions: Actions
    cookie: int
    packets: int

    @classmethod
    def of(cls, count: RuleCount) -> CountedRule:
        """Return ``count`` with the rule's fields beside the packets."""
        rule = count.rule
        return cls(rule.switch, rule.priority, rule.match, rule.actions, rule.cookie, count.packets)


@dataclass(frozen=True, slots=True)
class RulesAnswer:
    """Switch -> the rules installed on it, read back."""

    rules: Mapping[str, tuple[CountedRule, ...]]


@dataclass(frozen=True, slots=True)
class VerificationAnswer:
    """Differences between the switches and the decision, one line each, and the number of ``rules`` expected.

    ``packets``: flow -> packets counted at each switch along its path.
    """

    mismatches: tuple[str, ...]
    rules: int
    packets: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ObservedPathsAnswer:
    """Flow -> the path that the switches' hashing chose, None before its first packet."""

    paths: Mapping[str, Path | None]


@dataclass(frozen=True, slots=True)
class TakenAnswer:
    """:class:`ObservedPathsAnswer` under the key of the deprecated route ``/taken``."""

    taken: Mapping[str, Path | None]


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Why a request was refused, in one line."""

    error: str


Answer = (
    FabricAnswer
    | StateAnswer
    | DecisionAnswer
    | CommitAnswer
    | ThroughputAnswer
    | RulesAnswer
    | VerificationAnswer
    | ObservedPathsAnswer
    | TakenAnswer
    | ErrorAnswer
)

RENAMED_ROUTES: Final[Mapping[str, str]] = {"/check": "/verification", "/taken": "/observed-paths"}
"""Deprecated route -> its new name; the old ones are answered until the next release."""


def job_request_from_json(body: object) -> JobRequest:
    """Return the request of the parsed JSON ``body``. Raises ``ValueError``, as the functions below do."""
    given = _object(body, JobRequest)
    apply = apply_from_text(given.get("apply", "now"))
    job = job_from_json(given.get("job"))
    check_job_name(job.name)
    return JobRequest(job, apply)


def profile_request_from_json(body: object) -> ProfileRequest:
    """Return the request of the parsed JSON ``body``."""
    given = _object(body, ProfileRequest)
    apply = apply_from_text(given.get("apply", "now"))
    measured = decode(Measured, given.get("profile"), "profile")
    check_measured(measured)
    return ProfileRequest(decode(str, given.get("job"), "job"), measured, apply)


def link_request_from_json(body: object) -> LinkRequest:
    """Return the request of the parsed JSON ``body``."""
    given = _object(body, LinkRequest)
    if given.get("state") not in ("down", "up"):
        raise ValueError('\'state\' must be "down" or "up"')
    return decode(LinkRequest, {**given, "apply": apply_from_text(given.get("apply", "now"))}, "body")


def commit_request_from_json(body: object) -> CommitRequest:
    """Return the request of the parsed JSON ``body``."""
    flows = _object(body, CommitRequest).get("flows")
    if not isinstance(flows, list) or not all(isinstance(flow, str) for flow in flows):
        raise ValueError("'flows' must be an array of flow ids")
    return CommitRequest(tuple(flows))


def verification_request_from_json(body: object) -> VerificationRequest:
    """Return the request of the parsed JSON ``body``."""
    return decode(VerificationRequest, _object(body, VerificationRequest), "body")


def throughput_from_json(body: object) -> dict[str, float]:
    """Return the shares of the parsed JSON ``body``: job -> share."""
    shares = decode(dict[str, float], body, "throughput")
    for job, share in shares.items():
        if share < 0:
            raise ValueError(f"throughput.{job}: expected 0 or more")
    return shares


def switches_from_json(body: object) -> tuple[str, ...]:
    """Return the names of the parsed JSON ``body``, a list of switches."""
    return decode(tuple[str, ...], body, "switches")


def throughput_request_from_json(body: object) -> ThroughputRequest:
    """Return the request of the parsed JSON ``body``."""
    given = _object(body, ThroughputRequest)
    return ThroughputRequest(throughput_from_json(given.get("throughput")), apply_from_text(given.get("apply", "now")))


def apply_from_text(text: object) -> Apply:
    """Return ``text`` as an :data:`Apply`: when running flows move."""
    if text == "now":
        return "now"
    if text == "prepare":
        return "prepare"
    raise ValueError(f"apply must be now or prepare, not '{text}'")


def _object(body: object, kind: type) -> Mapping[str, object]:
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")
    known = sorted(field.name for field in fields(kind))
    unknown = sorted(body.keys() - known)
    if unknown:
        raise ValueError(f"unknown key '{unknown[0]}', expected {', '.join(known)}")
    return body
