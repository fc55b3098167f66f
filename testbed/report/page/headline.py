"""What came out, in words made from the numbers of ``summary.json``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.metrics.metric import value_at

SAME_POINTS: Final = 1.0
"""Schedulers that differ by less than this many points of GPU utilisation are said to do the same."""

Entry = Mapping[str, Any]


def headline(summary: Entry) -> str:
    """One or two sentences: how busy the GPUs are under the best scheduler and the baseline, and why they differ."""
    runs = summary["runs"]
    if not runs:
        return "No scheduler was run."
    if len(runs) == 1:
        return f"{_said(runs[0])} keeps {_busy(runs[0])} of the GPUs busy.{_lost(runs[0])}"
    values = [run["gpu_utilization"] for run in runs]
    if 100 * (max(values) - min(values)) < SAME_POINTS:
        names = _list([_said(run) for run in runs])
        return f"{names} keep the GPUs equally busy: {_busy(runs[0])}, within {SAME_POINTS:g} point."
    return _contrast(summary, runs)


def _contrast(summary: Entry, runs: Sequence[Entry]) -> str:
    baseline = runs[0]
    best = max(runs, key=lambda run: float(run["gpu_utilization"]))
    other = baseline if best is not baseline else min(runs, key=lambda run: float(run["gpu_utilization"]))
    said = f"{_said(best)} keeps {_busy(best)} of the GPUs busy, {_said(other)} {_busy(other)}"
    gain = (
        value_at(summary["comparison"].get(best["scheduler"], {}), "gain_split.run") if best is not baseline else None
    )
    return f"{said}{_why(gain)}"


def _why(gain: Entry | None) -> str:
    """Where the difference comes from; both parts may also be losses."""
    if gain is None:
        return "."
    own, others = gain["own_points"], gain["others_points"]
    parts = [
        f"{abs(points):.0f} points were {'lost' if points > 0 else 'won'} {what}"
        for points, what in ((own, "to connections of one job on one link"), (others, "to other jobs"))
        if abs(points) >= 0.5
    ]
    if len(parts) == 2 and own > 0 and others > 0:
        parts[1] = f"{others:.0f} to other jobs"
    return ": " + ", ".join(parts) + "." if parts else "."


def _lost(run: Entry) -> str:
    loss = run.get("loss")
    if not loss or loss["own_points"] + loss["others_points"] < SAME_POINTS:
        return ""
    return (
        f" Contention costs {loss['own_points']:.0f} points where connections of one job meet on one link, "
        f"and {max(0.0, loss['others_points']):.0f} to other jobs."
    )


def _said(run: Entry) -> str:
    verdict = run["fidelity"]["verdict"]
    name = str(run["scheduler"])
    return name if verdict == "ok" else f"{name} ({verdict})"


def _busy(run: Entry) -> str:
    return f"{100 * run['gpu_utilization']:.0f} %"


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
