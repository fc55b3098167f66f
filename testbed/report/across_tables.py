"""Tables of several runs side by side; made from what :func:`testbed.metrics.aggregate.side_by_side` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from testbed.report.tables import change, marked, new_table, percent, points, seconds


def tables(document: Mapping[str, Any]) -> list[Table]:
    """A row per run and scheduler, the JCT of every job, and the means where there are several runs."""
    runs, means = document["runs"], document["means"]
    return [_runs(runs), _jobs(runs), *([_means(means)] if means else [])]


def _runs(rows: Sequence[Mapping[str, Any]]) -> Table:
    right = ("seed", "GPU util %", "points")
    table = new_table("runs", left=("run", "engine", "scheduler"), right=right, last="verdict")
    for row in rows:
        table.add_row(
            row["label"],
            row["engine"],
            row["scheduler"],
            str(row["seed"]),
            percent(row["gpu_utilization"]),
            points(row["gpu_utilization_points"]),
            row["verdict"],
        )
    return table


def _jobs(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = new_table("JCT", left=("job", "run", "scheduler"), right=("JCT s", "+- %"))
    for name in dict.fromkeys(name for row in rows for name in row["jct_s"]):
        head = name
        for row in rows:
            if name in row["jct_s"]:
                shift = row["jct_change"].get(name)
                name_of_run = marked(row["scheduler"], row["verdict"])
                table.add_row(head, row["label"], name_of_run, seconds(row["jct_s"][name], 1), change(shift))
                head = ""
        table.add_section()
    return table


def _means(rows: Sequence[Mapping[str, Any]]) -> Table:
    right = ("runs", "GPU util %", "spread", "points")
    table = new_table("means", left=("scenario", "engine", "scheduler"), right=right, last="JCT +- %")
    for row in rows:
        jobs = ", ".join(f"{name} {change(value)}" for name, value in row["jct_change"].items())
        believable = "" if row["believable"] == row["runs"] else f" ({row['believable']} ok)"
        table.add_row(
            row["scenario"],
            row["engine"],
            row["scheduler"],
            f"{row['runs']}{believable}",
            percent(row["gpu_utilization"]),
            percent(row["spread"]),
            points(row["gpu_utilization_points"]),
            jobs,
        )
    return table
