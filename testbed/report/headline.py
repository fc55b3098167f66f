"""What came out and why, in words made from the numbers of ``summary.json``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.metrics.formats import adding_up

SAME_POINTS: Final = 1.0
"""Schedulers that differ by less than this many points of GPU utilisation are said to do the same."""

Entry = Mapping[str, Any]
_PARTS: Final = {
    "alone": "are lost alone",
    "own": "to collisions of a job's own connections",
    "failures": "to failures",
    "others": "to other jobs",
}
"""Parts of the idle time, in words."""


def headline(summary: Entry) -> str:
    """One sentence says how busy the GPUs are under the best scheduler and the baseline, one why they are idle."""
    runs = summary["runs"]
    if not runs:
        return "No scheduler was run."
    if len(runs) == 1:
        return f"{_said(runs[0])} keeps {_busy(runs[0])} of the GPUs busy.{_why(runs)}"
    values = [run["gpu_utilization"] for run in runs]
    if 100 * (max(values) - min(values)) < SAME_POINTS:
        names = _list([_said(run) for run in runs])
        same = f"{names} keep the GPUs equally busy: {_busy(runs[0])}, within {SAME_POINTS:g} point."
        return f"{same}{_why(runs[:1], under=True)}"
    baseline, best = runs[0], max(runs, key=lambda run: float(run["gpu_utilization"]))
    other = baseline if best is not baseline else min(runs, key=lambda run: float(run["gpu_utilization"]))
    contrast = f"{_said(best)} keeps {_busy(best)} of the GPUs busy, {_said(other)} {_busy(other)}."
    return f"{contrast}{_why([other, best], under=True)}"


def _why(runs: Sequence[Entry], *, under: bool = False) -> str:
    """Why GPUs are idle, a sentence; empty where it is not known. ``under``: name the scheduler of each of ``runs``."""
    if any(not run.get("loss") for run in runs):
        return ""
    where = [f" under {run['scheduler']}" if under else "" for run in runs]
    parts = [adding_up([run["loss"].get(f"{part}_points", 0.0) for part in _PARTS]) for run in runs]
    words = list(_PARTS.values())
    shown = [place for place in range(len(words)) if place == 0 or any(of_run[place] for of_run in parts)]
    if len(shown) == 1:
        rest = "".join(f" and {of_run[0]:.1f}{name}" for of_run, name in list(zip(parts, where, strict=True))[1:])
        return f" All {parts[0][0]:.1f} idle points{where[0]}{rest} are lost alone, none to contention."
    first = _list([f"{parts[0][place]:.1f} {words[place]}" for place in shown])
    clauses = [f" Of {sum(parts[0]):.1f} idle points{where[0]} {first}"]
    for of_run, name in list(zip(parts, where, strict=True))[1:]:
        clauses.append(f"of {sum(of_run):.1f}{name} {_list([f'{of_run[place]:.1f}' for place in shown])}")
    return f"{'; '.join(clauses)}."


def _said(run: Entry) -> str:
    verdict = run["fidelity"]["verdict"]
    name = str(run["scheduler"])
    return name if verdict == "ok" else f"{name} ({verdict})"


def _busy(run: Entry) -> str:
    return f"{100 * run['gpu_utilization']:.0f} %"


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
