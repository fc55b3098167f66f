"""Whether a decision can be carried out: its names are there, its paths join their ports, its levels exist. Pure.

For schedulers of other packages; :func:`problem_of` returns words for those who know where the scheduler's code is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Final

from controller.decision import ByteLevels, ByteWeights, ClusterView, Decision
from topologies.fabric import Fabric
from workloads.job import Flow

_FLOW: Final = "the id of a flow of a running job"
_JOB: Final = "the name of a running job"
_EITHER: Final = "the name of a running job or the id of one of its flows"
_TCP_PORTS: Final = 65535

MOST_PARTS: Final = 1024
"""Weights of a flow."""

Expectation = Callable[[object], str]
"""A value -> what is expected in its place; empty if it will do."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A field of a decision that is a mapping: a value of it in a word, what its keys are, and those there are."""

    name: str
    value: str
    keys: str
    known: frozenset[str]
    expects: Expectation


def problem_of(decided: object, view: ClusterView, *, switches_hash: bool) -> str:
    """Return the first thing in what ``decide(view, ..)`` returned that cannot be carried out; empty if all can.

    ``switches_hash``: whether the scheduler says so. What the decision before had of jobs that have left may stay.
    """
    if not isinstance(decided, Decision):
        return f"returned {_shown(decided)}, expected a Decision"
    return next(_problems(decided, view, switches_hash), "")


def _problems(decision: Decision, view: ClusterView, switches_hash: bool) -> Iterator[str]:
    flows = {flow.id: flow for flow in view.flows}
    for column in _columns(view, frozenset(flows)):
        yield from _wrong_in(column, getattr(decision, column.name), getattr(view.decision, column.name))
    for name, path in decision.paths.items():
        if name in flows:
            yield from _wrong_path(path, flows[name], view.fabric)
    yield from _wrong_hashed(decision, {*flows, *view.decision.hashed}, switches_hash)
    for name in decision.exclusive:
        if name not in view.fabric.links or view.fabric.links[name].kind != "pcie":
            yield f"returned the exclusive link {_shown(name)}, expected one between a PCIe switch and a NIC"
    yield from _wrong_notes(decision.notes)


def _columns(view: ClusterView, flows: frozenset[str]) -> tuple[_Column, ...]:
    jobs, last = frozenset(view.jobs), view.level_count - 1
    return (
        _Column("paths", "a path", _FLOW, flows, lambda _path: ""),
        _Column("levels", "level", _EITHER, flows | jobs, _whole_number(0, last)),
        _Column("rates", "rate", _FLOW, flows, _number("bit/s, 0 or more")),
        _Column("shifts", "shift", _JOB, jobs, _number("seconds, 0 or more")),
        _Column("periods", "period", _JOB, jobs, _number("seconds, 0 or more")),
        _Column("byte_levels", "byte levels", _EITHER, flows | jobs, _byte_levels(last)),
        _Column("weights", "weights", _EITHER, flows | jobs, _byte_weights),
        _Column("ports", "source port", _FLOW, flows, _whole_number(1, _TCP_PORTS)),
    )


def _wrong_in(column: _Column, given: object, before: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield f"returned {column.name} that are {_shown(given)}, expected a mapping"
        return
    for key, value in given.items():
        if key not in column.known and key not in before:
            yield f"returned {column.name} that name {_shown(key)}, expected {column.keys}"
        elif expected := column.expects(value):
            yield f"returned {column.value} {_shown(value)} for '{key}', expected {expected}"


def _wrong_path(path: object, flow: Flow, fabric: Fabric) -> Iterator[str]:
    candidates = fabric.candidate_paths(flow.source, flow.target)
    if not isinstance(path, tuple) or path not in candidates:
        yield f"returned a path for flow '{flow.id}' {_why_no_path(path, flow, fabric)}"


def _why_no_path(path: object, flow: Flow, fabric: Fabric) -> str:
    if not isinstance(path, tuple) or not path:
        return f"that is {_shown(path)}, expected a tuple of names of links"
    unknown = [name for name in path if name not in fabric.links]
    if unknown:
        return f"over {_shown(unknown[0])}, which is no link of the fabric or has failed"
    links = [fabric.links[name] for name in path]
    if links[0].source != flow.source:
        return f"that begins at {links[0].source}, expected its port {flow.source}"
    for one, other in pairwise(links):
        if one.target != other.source:
            return f"that does not connect: '{one.name}' ends at {one.target}, '{other.name}' begins at {other.source}"
    if links[-1].target != flow.target:
        return f"that ends at {links[-1].target}, expected its port {flow.target}"
    return f"of {len(path)} links, expected one of fabric.candidate_paths('{flow.source}', '{flow.target}')"


def _wrong_hashed(decision: Decision, known: set[str], switches_hash: bool) -> Iterator[str]:
    for name in decision.hashed:
        if name not in known:
            yield f"returned the hashed flow {_shown(name)}, expected {_FLOW}"
    if decision.hashed and not switches_hash:
        yield "returned hashed flows, expected none where the class does not say switches_hash = True"


def _wrong_notes(notes: object) -> Iterator[str]:
    try:
        json.dumps(notes, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"returned notes that are not JSON: {error}"


def _whole_number(first: int, last: int) -> Expectation:
    def expects(value: object) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool) and first <= value <= last
        return "" if whole else f"a whole number from {first} to {last}"

    return expects


def _number(what: str) -> Expectation:
    def expects(value: object) -> str:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if number and isfinite(value) and value >= 0 else what  # type: ignore[arg-type,operator]

    return expects


def _byte_levels(last: int) -> Expectation:
    def expects(value: object) -> str:
        if not isinstance(value, ByteLevels):
            return "ByteLevels"
        if value.by not in ("sent", "left"):
            return "ByteLevels by 'sent' or 'left'"
        ascending = all(one < other for one, other in pairwise(value.thresholds))
        return "" if ascending and len(value.thresholds) <= last else f"at most {last} thresholds, ascending"

    return expects


def _byte_weights(value: object) -> str:
    if not isinstance(value, ByteWeights):
        return "ByteWeights"
    positive = all(isinstance(weight, int | float) and isfinite(weight) and weight > 0 for weight in value.parts)
    return "" if positive and 1 <= len(value.parts) <= MOST_PARTS else f"1 to {MOST_PARTS} weights above 0"


def _shown(value: object) -> str:
    """A value as it is written in Python, shortened; None is what a function without ``return`` returns."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
