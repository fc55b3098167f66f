"""The tables of a run as the page shows them: every column with its unit and meaning, every cell with its number.

A table: ``id``, ``title``, ``columns`` [{title, meaning, text}] and ``rows`` of cells. A cell is a string, or
[string, number] where the table sorts by the number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from testbed.experiment.network_model import PER_FLOW
from testbed.metrics.catalogue import COMPARISON, JOB, RUN
from testbed.metrics.comparison import against
from testbed.metrics.formats import MISSING, percent, seconds
from testbed.metrics.managers.manager_metrics import MANAGER, OUTCOMES
from testbed.metrics.metric import Column, Entry, Metric, columns, put, value_at
from testbed.metrics.network.message_catalogue import PERCENTILES
from testbed.metrics.serving.request_catalogue import REQUEST_COLUMNS
from testbed.report.tables import (
    loss_cells,
    loss_columns,
    loss_points,
    losses_by_name,
    marked_run,
    requests_of,
    verdict,
)
from topologies.units import format_size

Summary = Mapping[str, Any]
Cell = str | list[Any]


def table_views(summary: Summary) -> list[dict[str, Any]]:
    """All tables of a run, in the order they are shown."""
    found = [
        _runs(summary),
        _jobs(summary),
        _requests(summary),
        _managers(summary),
        _losses(summary),
        _messages(summary),
        _packets(summary),
    ]
    return [table for table in found if table is not None]


def table(
    name: str, title: str, heads: Sequence[tuple[str, str]], text: int, rows: Sequence[Sequence[Cell]], note: str = ""
) -> dict[str, Any]:
    """A table as above; ``heads``: (title, meaning) of each column, the first ``text`` of them are words."""
    shown = [{"title": head, "meaning": meaning, "text": place < text} for place, (head, meaning) in enumerate(heads)]
    return {"id": name, "title": title, "note": note, "columns": shown, "rows": [list(row) for row in rows]}


def _runs(summary: Summary) -> dict[str, Any]:
    shown = columns([*RUN, *(metric for metric in COMPARISON if not metric.by_job)])
    heads = [("scheduler", ""), *_heads(shown), ("verdict", "can the run be believed")]
    rows = [
        [str(run["scheduler"]), *_cells({**run, **against(summary, run)}, shown), verdict(run)]
        for run in summary["runs"]
    ]
    note = "Shares are of the GPU time that jobs were allocated; points: difference to the first scheduler."
    return table("runs", "Schedulers", heads, 1, rows, note)


def _jobs(summary: Summary) -> dict[str, Any]:
    compared = [metric for metric in COMPARISON if metric.by_job]
    shown = columns([*JOB, *compared])
    heads = [("job", ""), ("scheduler", ""), *_heads(shown)]
    rows = []
    for name in dict.fromkeys(job["name"] for run in summary["runs"] for job in run["jobs"]):
        for run in summary["runs"]:
            for job in (job for job in run["jobs"] if job["name"] == name):
                entry = dict(job)
                for metric in compared:
                    put(entry, metric.key, (value_at(against(summary, run), metric.key) or {}).get(name))
                rows.append([name, marked_run(run), *_cells(entry, shown)])
    note = "JCT is projected from the mean iteration time; with * it was measured. +- %: change against the first."
    return table("jobs", "Jobs", heads, 2, rows, note)


def _requests(summary: Summary) -> dict[str, Any] | None:
    rows = [[job["name"], marked_run(run), *_cells(job, REQUEST_COLUMNS)] for run, job in requests_of(summary)]
    note = "Requests that arrived in the window. First token: from the arrival of a request on."
    heads = [("job", ""), ("scheduler", ""), *_heads(REQUEST_COLUMNS)]
    return table("requests", "Requests", heads, 2, rows, note) if rows else None


def _managers(summary: Summary) -> dict[str, Any] | None:
    runs = [run for run in summary["runs"] if run.get("manager")]
    if not runs:
        return None
    shown = columns([*OUTCOMES, *MANAGER])
    rows = [[marked_run(run), *_cells(run["manager"], shown)] for run in runs]
    note = "Times of jobs in seconds: completion (mean to p99), without GPUs (queue); GPUs held; stops and moves."
    return table("manager", "Cluster manager", [("scheduler", ""), *_heads(shown)], 1, rows, note)


def _losses(summary: Summary) -> dict[str, Any] | None:
    groups = losses_by_name(summary)
    if not groups:
        return None
    shown = loss_columns(summary)
    heads = [
        ("job", ""),
        ("scheduler", ""),
        *((f"{title}, points", meaning) for title, meaning in shown.items()),
    ]
    heads += [("idle, points", "what utilisation lacks to 100 %: the sum")]
    rows = [[name, marked_run(run), *_loss_cells(loss, shown)] for name, found in groups.items() for run, loss in found]
    note = (
        "The parts add up to the idle time. What a job loses alone is simulated: the same job with nothing beside it."
    )
    return table("losses", "Why GPUs are idle", heads, 2, rows, note)


def _loss_cells(loss: Entry | None, shown: Collection[str]) -> list[Cell]:
    texts = loss_cells(loss, shown)
    values = [0.0] * len(texts) if loss is None else loss_points(loss, shown)
    return [MISSING if loss is None else [text, value] for text, value in zip(texts, values, strict=True)]


def _messages(summary: Summary) -> dict[str, Any] | None:
    """A row for each job, scheduler and group of sizes."""
    rows: list[list[Cell]] = [
        [str(job["name"]), marked_run(run), *_message_cells(group)]
        for name in dict.fromkeys(job["name"] for run in summary["runs"] for job in run["jobs"])
        for run in summary["runs"]
        for job in run["jobs"]
        if job["name"] == name
        for group in value_at(job, "messages.by_size") or ()
    ]
    note = "A message: what one connection carries in one phase of one iteration. Slowdown: its time / its time alone."
    return table("messages", "Messages", MESSAGE_HEADS, 2, rows, note) if rows else None


MESSAGE_HEADS: Final = (
    ("job", ""),
    ("scheduler", ""),
    ("size", "bytes of a message; the largest of its group"),
    ("messages", "in the window, in undisturbed iterations"),
    *((f"{key} s", f"flow completion time, {what}") for key, what in PERCENTILES.items()),
    *((f"slowdown {key}", f"that / time in an empty network, {what}") for key, what in PERCENTILES.items()),
)


def _message_cells(group: Entry) -> list[Cell]:
    times, slowdowns = group["completion_s"], group["slowdown"]
    return [
        [format_size(group["to_bytes"]), group["to_bytes"]],
        [str(group["count"]), group["count"]],
        *([seconds(times[key]), times[key]] for key in PERCENTILES),
        *([f"{slowdowns[key]:.2f}", slowdowns[key]] for key in PERCENTILES),
    ]


def _packets(summary: Summary) -> dict[str, Any] | None:
    """A row for each job and scheduler of a simulation at line rate."""
    rows: list[list[Cell]] = [
        [str(job["name"]), marked_run(run), *_packet_cells(job["network"])]
        for name in dict.fromkeys(job["name"] for run in summary["runs"] for job in run["jobs"])
        for run in summary["runs"]
        for job in run["jobs"]
        if job["name"] == name and value_at(job, "network.packets")
    ]
    heads = [("job", ""), ("scheduler", ""), *((_PACKET_TITLES[name], what) for name, _, what in PER_FLOW)]
    note = "Held: how long pauses held its connections, added up; not to blame: while no queue stood beyond."
    return table("packets", "Packets", heads, 2, rows, note) if rows else None


_PACKET_TITLES: Final = {
    "packets": "packets",
    "marked_share": "marked %",
    "out_of_order_share": "out of order %",
    "held_s": "held s",
    "victim_s": "not to blame s",
}


def _packet_cells(counts: Entry) -> list[Cell]:
    shown = {"": lambda value: f"{value:,}", "share": percent, "s": seconds}
    return [[shown[unit](counts[name]), counts[name]] for name, unit, _ in PER_FLOW]


_Shown = Sequence[tuple[Metric[Any], Column]]


def _heads(shown: _Shown) -> list[tuple[str, str]]:
    return [(column.title, metric.meaning) for metric, column in shown]


def _cells(entry: Entry, shown: _Shown) -> list[Cell]:
    return [_cell(entry, metric, column) for metric, column in shown]


def _cell(entry: Entry, metric: Metric[Any], column: Column) -> Cell:
    text, value = column.cell(entry, metric.key), value_at(entry, metric.key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text
    whole = entry.get(column.share_of) if column.share_of else None
    return [text, value / whole if whole else value]
