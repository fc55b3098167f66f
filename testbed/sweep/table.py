"""What a sweep found, as rows: one per combination and scheduler for people, one per run for other programs. Pure."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import yaml
from rich.table import Table

from testbed.report.comparison.settings import short_names
from testbed.report.tables import MISSING, new_table, percent
from testbed.sweep.values import PointOutcome, Result, Settings, Sweep, SweepPoint

SCHEMA_VERSION: Final = 1
OWN_COLUMNS: Final = (
    "seed",
    "scheduler",
    "verdict",
    "gpu_utilization",
    "gpu_utilization_points",
    "mean_jct_s",
    "work_flop",
    "duration_s",
    "failed_checks",
    "problem",
    "point",
    "directory",
)
"""Columns of ``sweep.csv`` after the parameters; shares 0 to 1, points of a hundred, seconds, FLOP."""

Found = Mapping[SweepPoint, PointOutcome]


def document(sweep: Sweep, command: str, points: Sequence[SweepPoint], found: Found) -> dict[str, Any]:
    """The document ``sweep.json``: ``rows`` are means over seeds, ``points`` everything that ran, or was to run."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": sweep.name,
        "command": command,
        "scenario": sweep.scenario,
        "engine": sweep.engine,
        "rows": [row for settings, own in _combinations(points) for row in _rows(settings, own, found)],
        "points": [_point(point, found.get(point)) for point in points],
    }


def csv_text(sweep: Sweep, points: Sequence[SweepPoint], found: Found) -> str:
    """The text of ``sweep.csv``: a row per run and scheduler, and one for every point without a result."""
    stream = io.StringIO()
    keys = [axis.key for axis in sweep.axes]
    writer = csv.DictWriter(stream, [*keys, *OWN_COLUMNS], lineterminator="\n")
    writer.writeheader()
    for point in points:
        outcome = found.get(point, PointOutcome(problem="not run"))
        head = {**dict(point.settings), "seed": point.seed, "point": point.name, "problem": outcome.problem}
        head |= {"directory": outcome.directory, "failed_checks": "; ".join(outcome.failed_checks)}
        for result in outcome.results or (None,):
            writer.writerow(head | (_cells(result) if result else {}))
    return stream.getvalue()


def table(sweep: Sweep, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A row per combination: its values, GPU utilisation and spread under each scheduler, verdicts."""
    schedulers = list(dict.fromkeys(row["scheduler"] for row in rows if row["scheduler"]))
    right = [f"{scheduler} util %" for scheduler in schedulers]
    keys = [axis.key for axis in sweep.axes]
    shown = new_table(f"{sweep.name}: mean over seeds, +- spread", left=short_names(keys), right=right, last="verdicts")
    for own in _by_combination(rows):
        by_name = {row["scheduler"]: row for row in own}
        values = [_text(own[0]["set"][key]) for key in keys]
        utilization = [_utilization(by_name.get(scheduler)) for scheduler in schedulers]
        shown.add_row(*values, *utilization, _verdicts(own))
    return shown


def _combinations(points: Sequence[SweepPoint]) -> Iterable[tuple[Settings, list[SweepPoint]]]:
    own: dict[Settings, list[SweepPoint]] = {}
    for point in points:
        own.setdefault(point.settings, []).append(point)
    return own.items()


def _rows(settings: Settings, points: Sequence[SweepPoint], found: Found) -> list[dict[str, Any]]:
    """A row per scheduler of one combination; one without a scheduler if none of its points came to a result."""
    outcomes = [found.get(point, PointOutcome(problem="not run")) for point in points]
    by_scheduler: dict[str, list[Result]] = {}
    for outcome in outcomes:
        for result in outcome.results:
            by_scheduler.setdefault(result.scheduler, []).append(result)
    missing = Counter("failed" if outcome.status else "not run" for outcome in outcomes if outcome.problem)
    head = {"set": _values(settings), "seeds": [point.seed for point in points]}
    return [
        {**head, "scheduler": name, **_mean(by_scheduler.get(name, [])), "missing": dict(missing)}
        for name in by_scheduler or ("",)
    ]


def _mean(results: Sequence[Result]) -> dict[str, Any]:
    """Means over the runs there are; ``spread`` is the sample standard deviation, None of fewer than two."""
    utilization = [result.gpu_utilization for result in results]
    return {
        "runs": len(results),
        "gpu_utilization": statistics.fmean(utilization) if utilization else None,
        "spread": statistics.stdev(utilization) if len(utilization) > 1 else None,
        "gpu_utilization_points": _known_mean([result.points for result in results]),
        "mean_jct_s": _known_mean([result.mean_jct_s for result in results]),
        "verdicts": dict(Counter(result.verdict for result in results)),
    }


def _known_mean(values: Sequence[float | None]) -> float | None:
    """The mean; None if one is missing, for a mean over fewer runs would compare unlike things."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _point(point: SweepPoint, outcome: PointOutcome | None) -> dict[str, Any]:
    done = outcome or PointOutcome(problem="not run")
    return {
        "point": point.name,
        "set": _values(point.settings),
        "seed": point.seed,
        "directory": f"{point.name}/{done.directory}" if done.directory else "",
        "problem": done.problem,
        "failed_checks": list(done.failed_checks),
        "runs": [_cells(result) for result in done.results],
    }


def _cells(result: Result) -> dict[str, Any]:
    return {
        "scheduler": result.scheduler,
        "verdict": result.verdict,
        "gpu_utilization": result.gpu_utilization,
        "gpu_utilization_points": result.points,
        "mean_jct_s": result.mean_jct_s,
        "work_flop": result.work_flop,
        "duration_s": result.duration_s,
    }


def _values(settings: Settings) -> dict[str, Any]:
    """The settings as values that JSON has."""
    return {key: json.loads(json.dumps(yaml.safe_load(text), default=str)) for key, text in settings}


def _by_combination(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    own: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        own.setdefault(json.dumps(row["set"]), []).append(row)
    return list(own.values())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _utilization(row: Mapping[str, Any] | None) -> str:
    if row is None or row["gpu_utilization"] is None:
        return MISSING
    spread = f" +- {percent(row['spread'])}" if row["spread"] is not None else ""
    return f"{percent(row['gpu_utilization'])}{spread}"


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """``ok`` if all are; else who is what how often, and how many seeds are missing."""
    names = [row["scheduler"] for row in rows if row["scheduler"]]
    bad = [
        f"{row['scheduler']}: {count} of {row['runs']} {verdict}"
        for row in rows
        for verdict, count in row["verdicts"].items()
        if verdict != "ok"
    ]
    missing = [f"{count} of {len(rows[0]['seeds'])} seeds {why}" for why, count in rows[0]["missing"].items()]
    return "; ".join([*bad, *missing]) or ("ok" if names else MISSING)
