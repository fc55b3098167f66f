"""The comparison in a few sentences, made from its numbers. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.metrics.confidence import paired
from testbed.metrics.formats import percent

Group = Mapping[str, Any]


def headline(document: Mapping[str, Any]) -> str:
    """What the runs are, which scheduler keeps most GPUs busy, and how sure that is."""
    groups = document["groups"]
    if not groups:
        return "No run has a result."
    scenarios = dict.fromkeys(group["scenario"] for group in groups)
    count = document["run_count"]
    said = [f"{count} {'run' if count == 1 else 'runs'} of {_listed(list(scenarios))}."]
    combinations = {(*group["settings"], group["scenario"], group["engine"]) for group in groups}
    said.append(_ranking(groups) if len(combinations) == 1 else _wins(groups, len(combinations)))
    said += _unproven(groups) if len(combinations) == 1 else []
    doubtful = sum(group["runs"] - group["ok"] for group in groups)
    if doubtful:
        said.append(f"{doubtful} of {document['row_count']} results have a verdict that is not ok.")
    if document["missing"]:
        said.append(f"{len(document['missing'])} points of the sweep have no result.")
    return " ".join(said)


def _ranking(groups: Sequence[Group]) -> str:
    """One combination: all schedulers, the best first, with their confidence intervals."""
    ordered = sorted(groups, key=_mean, reverse=True)
    busy = [f"{group['scheduler']} {_percent(group)}" for group in ordered]
    first = f"GPU utilisation: {_listed(busy)}."
    if len(ordered) < 2 or any(_half(group) is None for group in ordered[:2]):
        return first
    best, second = ordered[:2]
    apart = _mean(best) - (_half(best) or 0.0) > _mean(second) + (_half(second) or 0.0)
    relation = "do not overlap" if apart else "overlap: more seeds may change the order"
    return f"{first} The 95 % confidence intervals of {best['scheduler']} and {second['scheduler']} {relation}."


def _unproven(groups: Sequence[Group]) -> list[str]:
    """The gains over the baseline that are not larger than their spread over the seeds."""
    gains = [(group["scheduler"], group["metrics"].get("gpu_utilization_points")) for group in groups]
    return [
        f"The difference of {name} to the baseline, {gain['shown']} points, is not larger than its spread over the "
        f"seeds, {gain['spread']:.1f}: it proves nothing."
        for name, gain in gains
        if gain and gain["spread"] is not None and not gain["proven"]
    ]


def _wins(groups: Sequence[Group], combinations: int) -> str:
    """Several combinations: in how many of them each scheduler is ahead of all others, beyond the spread over seeds."""
    together: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        together.setdefault((*group["settings"], group["scenario"], group["engine"]), []).append(group)
    contests = [own for own in together.values() if len(own) > 1]
    if not contests:
        return f"{combinations} combinations, each with one scheduler."
    wins: dict[str, int] = {}
    for winner in filter(None, map(_ahead, contests)):
        wins[winner] = wins.get(winner, 0) + 1
    ordered = sorted(wins.items(), key=lambda item: -item[1])
    counted = [f"{name} is ahead of all others in {count}" for name, count in ordered]
    level = len(contests) - sum(wins.values())
    counted += [f"none is in {level}"] if level else []
    # One seed for all: nothing can be larger than a spread that nobody knows.
    single = all(group["metrics"]["gpu_utilization"]["n"] < 2 for own in contests for group in own)
    why = "one seed each proves nothing: give the sweep several seeds" if single else "beyond the spread over the seeds"
    return f"Of {len(contests)} combinations, by GPU utilisation {_listed(counted)} ({why})."


def _ahead(groups: Sequence[Group]) -> str:
    """The scheduler whose lead over each other one is larger than its spread over the seeds; empty if there is none."""
    best = max(groups, key=_mean)
    others = [group for group in groups if group is not best]
    return str(best["scheduler"]) if all(_leads(best, other) for other in others) else ""


def _leads(group: Group, other: Group) -> bool:
    """Whether ``group`` has the higher utilisation: pairs of the same seed, or no proof where the seeds differ."""
    own, theirs = _by_seed(group), _by_seed(other)
    if own.keys() != theirs.keys():
        return False
    difference = paired(list(own.values()), [theirs[seed] for seed in own])
    return difference.proven and percent(_mean(group)) != percent(_mean(other))


def _by_seed(group: Group) -> dict[int, float]:
    """Seed -> utilisation, the mean of its runs."""
    found: dict[int, list[float]] = {}
    for seed, value, *_ in group["metrics"]["gpu_utilization"]["values"]:
        found.setdefault(seed, []).append(value)
    return {seed: statistics.fmean(values) for seed, values in found.items()}


def _mean(group: Group) -> float:
    return float(group["metrics"]["gpu_utilization"]["mean"])


def _half(group: Group) -> float | None:
    half: float | None = group["metrics"]["gpu_utilization"]["half"]
    return half


def _percent(group: Group) -> str:
    half = _half(group)
    spread = f" \N{PLUS-MINUS SIGN} {100 * half:.1f}" if half is not None else ""
    return f"{percent(_mean(group))}{spread} %"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
