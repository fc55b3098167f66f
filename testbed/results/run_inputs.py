"""The inputs of a run as values that can be compared, and which runs had the same. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

OF_SCHEDULER: Final = "schedulers."
"""How keys begin that concern one scheduler only; its label follows."""
SCENARIO: Final = "scenario.yaml"
"""The key of ``unknown`` where the run's scenario is missing or damaged."""
MOST_NAMED: Final = 3
"""Runs that a line names one by one."""


@dataclass(frozen=True)
class RunInputs:
    """What a run was given: ``values``, key of the scenario -> value as text, for a file a digest of its content.

    The seed is left out, and so are names, descriptions and checks: they change no result or are compared in their
    own right. ``files``: key -> name of the file behind it. ``unknown``: keys of which it is unknown what the file
    held, or the plug-in did: the run was recorded by a version without digests, or the file was gone. ``unsaid``: keys
    that the version of the run did not have; they are compared as today's defaults.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()

    def shared(self) -> dict[str, str]:
        """What concerns all schedulers."""
        return {key: value for key, value in self.values.items() if not key.startswith(OF_SCHEDULER)}

    def of(self, scheduler: str) -> dict[str, str]:
        """What concerns ``scheduler``: what all share, and its own name, options and source."""
        own = f"{OF_SCHEDULER}{scheduler}"
        return self.shared() | ({own: self.values[own]} if own in self.values else {})


def differing_keys(values: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The keys whose values differ between the runs, one of each set that always differ together."""
    kept: dict[tuple[int, ...], str] = {}
    for key in dict.fromkeys(key for each in values for key in each):
        numbers: dict[str | None, int] = {}
        pattern = tuple(numbers.setdefault(each.get(key), len(numbers)) for each in values)
        if len(numbers) > 1:
            kept.setdefault(pattern, key)
    return tuple(kept.values())


def splitting_keys(values: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """As few of the differing keys, the first ones, as are needed to tell apart all runs that differ."""
    kept: list[str] = []
    groups = 1 if values else 0
    for key in differing_keys(values):
        found = len({tuple(each.get(name) for name in (*kept, key)) for each in values})
        if found > groups:
            kept.append(key)
            groups = found
    return tuple(kept)


def remarks(inputs: Mapping[str, RunInputs], schedulers: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each input in which runs differ, and one for each of which that is unknown.

    ``inputs``: label of a run -> its inputs; ``schedulers``: label -> the schedulers that it ran. All are runs of one
    scenario and engine: those that differ are not averaged together.
    """
    shared = {label: each.shared() for label, each in inputs.items() if SCENARIO not in each.unknown}
    lines = [_difference(key, shared, inputs) for key in splitting_keys(list(shared.values()))]
    for name in dict.fromkeys(name for own in schedulers.values() for name in own):
        key = f"{OF_SCHEDULER}{name}"
        own = {label: each.values for label, each in inputs.items() if name in schedulers[label] and key in each.values}
        if len({values[key] for values in own.values()}) > 1:
            lines.append(_difference(key, own, inputs))
    return lines + _doubts(inputs)


def settings_without_effect(
    inputs: Mapping[str, RunInputs], seeds: Mapping[str, int], results: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """A line for each key, and scheduler, whose values made no difference in runs that were alike but for them.

    ``seeds``: label of a run -> its seed; ``results``: label of a run -> scheduler -> all numbers of its jobs. All are
    runs of one scenario and engine.
    """
    lines = []
    for name in dict.fromkeys(name for own in results.values() for name in own):
        given = {label: inputs[label].of(name) for label, own in results.items() if name in own and label in inputs}
        for key in dict.fromkeys(key for each in given.values() for key in each):
            groups: dict[tuple[int, frozenset[tuple[str, str]]], list[str]] = {}
            for label, values in given.items():
                others = frozenset(item for item in values.items() if item[0] != key)
                groups.setdefault((seeds[label], others), []).append(label)
            varied = [own for own in groups.values() if len({given[label].get(key) for label in own}) > 1]
            if varied and all(results[label][name] == results[own[0]][name] for own in varied for label in own):
                said = " or ".join(dict.fromkeys(given[label].get(key, "not given") for own in varied for label in own))
                shown = _named(key, inputs.values())
                lines.append(f"{shown} ({said}) makes no difference to {name}, to the last digit")
    return lines


def _difference(key: str, values: Mapping[str, Mapping[str, str]], inputs: Mapping[str, RunInputs]) -> str:
    by_value: dict[str, list[str]] = {}
    for label, own in values.items():
        by_value.setdefault(own.get(key, "not given"), []).append(label)
    said = "; ".join(f"{value} in {_listed(labels)}" for value, labels in by_value.items())
    return f"not averaged together, {_named(key, inputs.values())} differs: {said}"


def _doubts(inputs: Mapping[str, RunInputs]) -> list[str]:
    """A line for each input of which nobody knows whether two runs or more had the same."""
    found = []
    for key in dict.fromkeys(key for each in inputs.values() for key in each.unknown):
        labels = [label for label, each in inputs.items() if key in each.unknown]
        if key == SCENARIO and len(inputs) > 1:
            found.append(f"unknown which scenario {_listed(labels)} had: no readable {SCENARIO}")
        elif len(labels) > 1:
            found.append(f"unknown whether {key} was the same in {_listed(labels)}: no digest was recorded")
    older = {label: each.unsaid for label, each in inputs.items() if each.unsaid}
    if older and len(inputs) > 1:
        keys = list(dict.fromkeys(key for own in older.values() for key in own))
        found.append(
            f"unknown what {_listed(keys)} was in {_listed(list(older))}, of an older version: taken as today's default"
        )
    return found


def _named(key: str, inputs: Iterable[RunInputs]) -> str:
    names = dict.fromkeys(each.files[key] for each in inputs if key in each.files)
    return f"{' / '.join(names)} ({key})" if names else key


def _listed(labels: Sequence[str]) -> str:
    named = list(labels[:MOST_NAMED])
    more = len(labels) - len(named)
    return f"{', '.join(named)} and {more} more" if more else ", ".join(named)
