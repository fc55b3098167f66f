"""Checks: statements about a run's ``summary.json`` that a scenario makes and a run must satisfy.

A check compares two sums: ``crux.gpu_utilization - ecmp.gpu_utilization >= 5 points``. A name is
``[scheduler.][job.]metric`` with the keys of ``summary.json``; one that names no scheduler must
hold for every scheduler's run. Numbers may carry a unit: times (``1.75s``, ``200ms``), ``points``
and ``%`` (both hundredths). A minus sign between names needs spaces, since names may hold hyphens.
A metric's name of an older version is read as today's, and the result says so.
The grammar is parsed here and never handed to ``eval``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.metrics.catalogue import JOB, RUN, check_names
from testbed.metrics.old_keys import JOB_KEYS
from topologies.input.spelling import nearest
from topologies.limits import WHOLE_NUMBER
from topologies.units import TIME_UNITS

Value = float | str

COMPARISONS: Final[Mapping[str, Callable[[Value, Value], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
UNITS: Final[Mapping[str, float]] = {**TIME_UNITS, "point": 0.01, "points": 0.01, "%": 0.01}
MAX_TOKENS: Final = 200
VERDICTS: Final = ("ok", "degraded", "invalid")

JOB_METRICS: Final = check_names(JOB)
RUN_METRICS: Final = check_names(RUN)
OLD_NAMES: Final = {old: new for old, new in JOB_KEYS.items() if new in JOB_METRICS}
"""Former metric that checks may still name -> its key of today."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-z]+)?"
    r"|(?P<name>[A-Za-z_]\w*(?:-\w+)*(?:\.\w+(?:-\w+)*)*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<sign><=|>=|==|!=|[-+*/()<>]))"
)


class CheckError(ValueError):
    """A check that cannot be parsed, or cannot be evaluated on a summary; one line."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: both sides as evaluated (None if they could not be), and one line of detail."""

    text: str
    passed: bool
    left: Value | None
    right: Value | None
    detail: str


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Value

    def names(self) -> Iterator[_Name]:
        yield from ()

    def evaluate(self, look_up: Callable[[str], Value]) -> Value:
        return self.value


@dataclass(frozen=True, slots=True)
class _Name:
    """A dotted name with today's key; ``written`` is the name in the check."""

    path: str
    written: str

    @classmethod
    def read(cls, written: str) -> _Name:
        owner, dot, metric = written.rpartition(".")
        return cls(f"{owner}{dot}{OLD_NAMES.get(metric, metric)}" if owner else written, written)

    def names(self) -> Iterator[_Name]:
        yield self

    def evaluate(self, look_up: Callable[[str], Value]) -> Value:
        return look_up(self.path)


@dataclass(frozen=True, slots=True)
class _Operation:
    sign: str
    left: _Expression
    right: _Expression

    def names(self) -> Iterator[_Name]:
        yield from self.left.names()
        yield from self.right.names()

    def evaluate(self, look_up: Callable[[str], Value]) -> Value:
        one, other = self.left.evaluate(look_up), self.right.evaluate(look_up)
        if isinstance(one, str) or isinstance(other, str):
            raise CheckError(f"'{one if isinstance(one, str) else other}' is a word, '{self.sign}' needs numbers")
        if self.sign == "/" and other == 0:
            raise CheckError("division by zero")
        return _ARITHMETIC[self.sign](one, other)


_Expression = _Literal | _Name | _Operation
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Check:
    """A parsed check."""

    text: str
    comparison: str
    left: _Expression
    right: _Expression

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names in it, in order and with today's keys."""
        return tuple(name.path for name in self._names())

    def evaluate(self, summary: Mapping[str, object]) -> CheckResult:
        """Evaluate on a ``summary.json`` document; a name it does not hold makes the check fail, not raise."""
        schedulers = _schedulers(summary)
        bare = any(name.split(".")[0] not in (*schedulers, "comparison") for name in self.names)
        results = [self._evaluate_for(summary, scheduler) for scheduler in (schedulers if bare else ("",))]
        if not results:
            return CheckResult(self.text, False, None, None, "the summary holds no runs")
        shown = next((result for result in results if not result.passed), results[0])
        detail = "; ".join([*(result.detail for result in results), *self._renamed()])
        return CheckResult(self.text, shown.passed, shown.left, shown.right, detail)

    def _names(self) -> tuple[_Name, ...]:
        return (*self.left.names(), *self.right.names())

    def _renamed(self) -> list[str]:
        old = {name.written: name.path for name in self._names() if name.path != name.written}
        return [f"'{written}' is now called '{path}'" for written, path in old.items()]

    def _evaluate_for(self, summary: Mapping[str, object], scheduler: str) -> CheckResult:
        prefix = f"{scheduler}: " if scheduler else ""
        try:
            left = self.left.evaluate(lambda name: _look_up(summary, scheduler, name))
            right = self.right.evaluate(lambda name: _look_up(summary, scheduler, name))
            if self.comparison not in ("==", "!=") and isinstance(left, str) != isinstance(right, str):
                raise CheckError(f"cannot compare {_show(left)} with {_show(right)}")
        except CheckError as error:
            return CheckResult(self.text, False, None, None, f"{prefix}{error}")
        passed = COMPARISONS[self.comparison](left, right)
        verdict = "holds" if passed else "does not hold"
        detail = f"{prefix}{_show(left)} {self.comparison} {_show(right)} {verdict}"
        return CheckResult(self.text, passed, left, right, detail)


def parse_check(text: str) -> Check:
    """Parse ``text``; raises :class:`CheckError` saying what was found and what was expected."""
    return _Parser(" ".join(text.split())).check()


def unknown_names(check: Check, schedulers: Sequence[str], jobs: Sequence[str]) -> list[str]:
    """Return one line for every name of ``check`` that a run of these schedulers and jobs will not report."""
    lines = []
    for name in check.names:
        parts = name.split(".")
        if parts[0] == "comparison":
            continue
        rest = parts[1:] if parts[0] in schedulers else parts
        known = RUN_METRICS
        if rest and rest[0] in jobs:
            rest, known = rest[1:], JOB_METRICS
        if ".".join(rest) not in known:
            lines.append(_unknown_line(name, ".".join(rest), known, schedulers, jobs))
    return lines


def _unknown_line(name: str, rest: str, known: Sequence[str], schedulers: Sequence[str], jobs: Sequence[str]) -> str:
    first = rest.partition(".")[0]
    if known is RUN_METRICS:
        near = nearest(first, [*schedulers, *jobs]) or nearest(rest, known)
        what = f"'{first}' is no scheduler, job or metric of this scenario" if first else "no metric is named"
    else:
        near = nearest(rest, known)
        what = f"'{rest}' is no metric of a job" if rest else "no metric is named"
    expected = f"did you mean '{near}'?" if near else "expected one of " + ", ".join(known)
    return f"unknown name '{name}' in check: {what}, {expected}"


def _schedulers(summary: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(run.get("scheduler")) for run in _runs(summary)))


def _runs(summary: Mapping[str, object]) -> list[Mapping[str, object]]:
    runs = summary.get("runs", ())
    return [run for run in runs if isinstance(run, Mapping)] if isinstance(runs, list | tuple) else []


def _look_up(summary: Mapping[str, object], scheduler: str, name: str) -> Value:
    """Value of ``name``, for a bare name that of ``scheduler``; repeated runs of a scheduler are averaged."""
    parts = name.split(".")
    if parts[0] == "comparison":
        return _walk(summary, parts, name)
    if parts[0] in _schedulers(summary):
        scheduler, parts = parts[0], parts[1:]
    values = [_in_run(run, parts, name) for run in _runs(summary) if str(run.get("scheduler")) == scheduler]
    if not values:
        raise CheckError(f"'{name}' is not in the summary")
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) == len(values):
        return sum(numbers) / len(numbers)
    return ", ".join(dict.fromkeys(str(value) for value in values))


def _in_run(run: Mapping[str, object], parts: Sequence[str], name: str) -> Value:
    jobs = run.get("jobs", ())
    for job in jobs if isinstance(jobs, list | tuple) else ():
        if parts and isinstance(job, Mapping) and job.get("name") == parts[0]:
            return _walk(job, parts[1:], name)
    return _walk(run, parts, name)


def _walk(document: object, parts: Sequence[str], name: str) -> Value:
    for part in parts:
        if not isinstance(document, Mapping) or part not in document:
            raise CheckError(f"'{name}' is not in the summary")
        document = document[part]
    if document is None:
        raise CheckError(f"'{name}' has no value in this run")
    if isinstance(document, bool) or not isinstance(document, int | float | str):
        raise CheckError(f"'{name}' is not a single value")
    if isinstance(document, int) and abs(document) > WHOLE_NUMBER:
        raise CheckError(f"'{name}' is too large, expected at most {WHOLE_NUMBER}")
    return document if isinstance(document, str) else float(document)


def _show(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value:.4g}"


class _Parser:
    """Recursive descent over ``sum comparison sum``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        if len(self.tokens) > MAX_TOKENS:
            raise CheckError(f"check '{text[:40]}...' is too long, expected at most {MAX_TOKENS} words and signs")
        self.position = 0

    def check(self) -> Check:
        left = self._sum()
        sign = self._next("a comparison (<=, >=, <, >, ==, !=)")
        if sign not in COMPARISONS:
            raise self._error(sign, "a comparison (<=, >=, <, >, ==, !=)")
        right = self._sum()
        if self.position < len(self.tokens):
            raise self._error(self.tokens[self.position], "the end of the check")
        return Check(self.text, str(sign), left, right)

    def _sum(self) -> _Expression:
        left = self._product()
        while self._peek() in ("+", "-"):
            sign = str(self._next(""))
            left = _Operation(sign, left, self._product())
        return left

    def _product(self) -> _Expression:
        left = self._atom()
        while self._peek() in ("*", "/"):
            sign = str(self._next(""))
            left = _Operation(sign, left, self._atom())
        return left

    def _atom(self) -> _Expression:
        token = self._next("a number or a name")
        if isinstance(token, _Literal | _Name):
            return token
        if token == "-":
            return _Operation("-", _Literal(0.0), self._atom())
        if token != "(":
            raise self._error(token, "a number or a name")
        inner = self._sum()
        if (closing := self._next("')'")) != ")":
            raise self._error(closing, "')'")
        return inner

    def _peek(self) -> object:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _next(self, expected: str) -> _Literal | _Name | str:
        if self.position >= len(self.tokens):
            raise CheckError(f"check '{self.text}' ends too early, expected {expected}")
        self.position += 1
        return self.tokens[self.position - 1]

    def _error(self, token: _Literal | _Name | str, expected: str) -> CheckError:
        shown = token if isinstance(token, str) else token.written if isinstance(token, _Name) else _show(token.value)
        return CheckError(f"'{shown}' is out of place in check '{self.text}', expected {expected}")


def _tokens(text: str) -> Iterator[_Literal | _Name | str]:
    """Yield literals, names and signs (as strings)."""
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise CheckError(f"cannot read '{text[position:].strip()}' in check '{text}', expected a number or a name")
        position = match.end()
        if match["number"]:
            yield _number(match["number"], match["unit"], text)
        elif match["name"]:
            yield _Literal(match["name"]) if match["name"] in VERDICTS else _Name.read(match["name"])
        else:
            yield _Literal(match["text"][1:-1]) if match["text"] else match["sign"]


def _number(number: str, unit: str | None, text: str) -> _Literal:
    if unit is not None and unit not in UNITS:
        raise CheckError(f"unknown unit '{unit}' in check '{text}', expected one of {', '.join(UNITS)}")
    return _Literal(float(number) * UNITS[unit] if unit else float(number))
