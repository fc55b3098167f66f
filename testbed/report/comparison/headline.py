"""The comparison in a few sentences, made from its numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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


def _ranking(groups: Sequence[Mapping[str, Any]]) -> str:
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


def _unproven(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """The gains over the baseline that are not larger than their spread over the seeds."""
    gains = [(group["scheduler"], group["metrics"].get("gpu_utilization_points")) for group in groups]
    return [
        f"The difference of {name} to the baseline, {gain['mean']:+.1f} points, is not larger than its spread over the "
        f"seeds, {gain['spread']:.1f}: it proves nothing."
        for name, gain in gains
        if gain and gain["spread"] is not None and not gain["proven"]
    ]


def _wins(groups: Sequence[Mapping[str, Any]], combinations: int) -> str:
    """Several combinations: in how many of them each scheduler is the best."""
    best: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for group in groups:
        where = (*group["settings"], group["scenario"], group["engine"])
        if where not in best or _mean(group) > _mean(best[where]):
            best[where] = group
    wins: dict[str, int] = {}
    for group in best.values():
        wins[group["scheduler"]] = wins.get(group["scheduler"], 0) + 1
    ordered = sorted(wins.items(), key=lambda item: -item[1])
    counted = [f"{name} in {count}" for name, count in ordered]
    return f"Of {combinations} combinations, the highest mean GPU utilisation has {_listed(counted)}."


def _mean(group: Mapping[str, Any]) -> float:
    return float(group["metrics"]["gpu_utilization"]["mean"])


def _half(group: Mapping[str, Any]) -> float | None:
    half: float | None = group["metrics"]["gpu_utilization"]["half"]
    return half


def _percent(group: Mapping[str, Any]) -> str:
    half = _half(group)
    spread = f" \N{PLUS-MINUS SIGN} {100 * half:.1f}" if half is not None else ""
    return f"{100 * _mean(group):.1f}{spread} %"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
