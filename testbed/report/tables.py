"""Runs as tables that line up, made from the document ``summary.json`` alone; columns are those of the catalogue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.catalogue import BASELINE, COMPARISON, JCT_CHANGE_NOTE, JOB, POINTS_NOTE, RUN
from testbed.metrics.comparison import against
from testbed.metrics.formats import MISSING as MISSING
from testbed.metrics.formats import adding_up, change, points_between, time_text, with_spread
from testbed.metrics.formats import percent as percent
from testbed.metrics.formats import seconds as seconds
from testbed.metrics.managers.manager_metrics import MANAGER, OUTCOMES
from testbed.metrics.metric import Column, Entry, Metric, columns, put, value_at
from testbed.metrics.serving.request_catalogue import REQUEST_COLUMNS
from testbed.report.comparison.settings import short_names
from testbed.report.fitting import new_table as new_table
from testbed.report.headline import headline
from testbed.report.terminal import output, say
from testbed.report.terminal import render as render
from testbed.report.terminal import show as show
from topologies.units import format_size

Summary = Mapping[str, Any]
Shown = Sequence[tuple[Metric[Any], Column]]
SPANS_SHOWN = 3


def idle_shares(entry: Mapping[str, Any]) -> tuple[float, float, float]:
    """Exposed, straggler and start idle time as shares of the allocated GPU time of a run or a job."""
    allocated = entry.get("allocated_gpu_s") or 0.0
    idle = entry["gpu_idle_s"]
    exposed, straggler, start = (
        idle[cause] / allocated if allocated else 0.0 for cause in ("exposed", "straggler", "start")
    )
    return exposed, straggler, start


def run_table(summary: Summary) -> Table:
    """A row per scheduler: the columns of runs and of their comparison with the baseline, and the verdict."""
    shown = columns([*RUN, *(metric for metric in COMPARISON if not metric.by_job)])
    title = f"{summary['scenario']}, {summary['engine']}, seed {summary['seed']}"
    titles = _titles(shown)
    optional, notes = least_important(shown), notes_of(shown)
    table = new_table(title, left=("scheduler",), right=titles, last="verdict", optional=optional, notes=notes)
    for run in summary["runs"]:
        table.add_row(run["scheduler"], *_cells({**run, **against(summary, run)}, shown), verdict(run))
    return table


def verdict(run: Mapping[str, Any]) -> str:
    """``ok``, ``degraded`` or ``invalid``."""
    return str(run["fidelity"]["verdict"])


def marked(name: str, verdict: str) -> str:
    """``crux``, or ``crux (degraded)``: wherever numbers of a run appear, so does a verdict that is not ``ok``."""
    return name if verdict == "ok" else f"{name} ({verdict})"


def marked_run(run: Mapping[str, Any]) -> str:
    """The scheduler of ``run``, with the verdict where that is not ``ok``."""
    return marked(str(run["scheduler"]), verdict(run))


def left_out(summary: Summary) -> list[str]:
    """A line for every run of whose iterations some were left out: how many, and why."""
    lines = []
    for run in summary["runs"]:
        count = sum(job.get("disturbed", 0) for job in run["jobs"])
        spans = [finding for finding in run["fidelity"].get("findings", ()) if finding["discarded"]]
        if count and spans:
            why = "; ".join(f"{f['from_s']:.1f} to {f['to_s']:.1f} s: {f['what']}" for f in spans[:SPANS_SHOWN])
            more = f" and {len(spans) - SPANS_SHOWN} more" if len(spans) > SPANS_SHOWN else ""
            lines.append(f"{run['scheduler']}: {count} iterations left out as disturbed ({why}{more})")
    return lines


def networks(summary: Summary) -> list[str]:
    """A line for every run with congestion control: what switches and senders did about congestion."""
    return [
        f"{run['scheduler']}: of {found['packets']:,} packets {percent(found['marked_share'])} % marked{_more(found)}"
        for run in summary["runs"]
        if (found := run.get("network") or {}).get("packets")
    ]


def _more(network: Mapping[str, Any]) -> str:
    """What only a simulation knows, or an emulation."""
    if network.get("notices") is None:
        longest = format_size(network["longest_queue_bytes"])
        return f", {network['dropped']:,} dropped; at most {longest} waited at a level"
    order, fullest = percent(network.get("out_of_order_share")), f"{network['largest_buffer_bytes'] / 1e6:.3g} MB"
    return (
        f", {order} % out of order; {network['notices']:,} notices; {network['pauses']:,} pauses{_held(network)}; "
        f"at most {fullest} in a switch"
    )


def _held(network: Mapping[str, Any]) -> str:
    """How long pauses held flows, and those that were not to blame."""
    held_s, victim_s = network.get("held_s") or 0.0, network.get("victim_s") or 0.0
    return f" held flows for {time_text(held_s)} in all, {time_text(victim_s)} of them not to blame" if held_s else ""


def schedulers_behind(summary: Summary) -> list[str]:
    """A line for every scheduler that has a label or options: ``no-priorities (crux, priorities: false)``."""
    choices = [
        SchedulerChoice(run["scheduler_name"], run["options"], run["scheduler"], run.get("load_balancing"))
        for run in summary["runs"]
        if "scheduler_name" in run
    ]
    return [choice.described for choice in choices if choice.described != choice.label]


def doubts(summary: Summary) -> list[str]:
    """A line for every reason not to believe a run; none if all are ``ok``."""
    return [
        f"{run['scheduler']} is {verdict(run)}: {reason}"
        for run in summary["runs"]
        if verdict(run) != "ok"
        for reason in (run["fidelity"]["reasons"] or ["no reason given"])
    ]


def job_table(summary: Summary) -> Table:
    """A row per job and scheduler: the columns of jobs and of their comparison with the baseline's."""
    compared = [metric for metric in COMPARISON if metric.by_job]
    shown = columns([*JOB, *compared])
    table = new_table(
        "jobs (JCT projected; with * measured)",
        left=("job", "scheduler"),
        right=_titles(shown),
        optional=least_important(shown),
        notes=notes_of(shown),
    )
    for name in _job_names(summary):
        for place, run in enumerate(summary["runs"]):
            job = next((job for job in run["jobs"] if job["name"] == name), None)
            if job is not None:
                entry = dict(job)
                for metric in compared:
                    by_job = value_at(against(summary, run), metric.key) or {}
                    put(entry, metric.key, by_job.get(name))
                table.add_row(name if place == 0 else "", marked_run(run), *_cells(entry, shown))
        table.add_section()
    return table


def split_table(summary: Summary) -> Table | None:
    """A row per job and scheduler: the points that its GPU utilisation lacks to 100 %, by :data:`LOSS_COLUMNS`.

    None if nothing could be taken apart.
    """
    groups = losses_by_name(summary)
    if not groups:
        return None
    title = "points of GPU utilisation lost"
    shown = loss_columns(summary)
    table = new_table(title, left=("job", "scheduler"), right=(*shown, "idle"), notes=shown)
    for name, rows in groups.items():
        for place, (run, loss) in enumerate(rows):
            table.add_row(name if place == 0 else "", marked_run(run), *loss_cells(loss, shown))
        table.add_section()
    return table


_FAILURES: Final = "failures"
LOSS_COLUMNS: Final = {
    "alone": "with nothing beside the job: communication that compute does not hide, jitter, stragglers",
    "own connections": "collisions of the job's own connections between switches",
    _FAILURES: "failures of the network or of hosts stopped it",
    "other jobs": "the rest: other jobs on the same links or GPUs",
}
"""Parts of the idle time -> their meaning."""
_LOSS_KEYS: Final = dict(zip(LOSS_COLUMNS, ("alone", "own", "failures", "others"), strict=True))


def loss_columns(summary: Summary) -> Mapping[str, str]:
    """Those of :data:`LOSS_COLUMNS` that a run has: failures only where some were to come."""
    jobs = [job for run in summary["runs"] for job in run["jobs"]]
    some = any(job.get("outages", {}).get("count") is not None for job in jobs)
    return {title: meaning for title, meaning in LOSS_COLUMNS.items() if some or title != _FAILURES}


def losses_by_name(summary: Summary) -> dict[str, list[tuple[Entry, Entry | None]]]:
    """Name of a job, at last ``all`` -> each run that could be taken apart and has the job, and what was lost in it."""
    runs = [run for run in summary["runs"] if run.get("loss")]
    found: dict[str, list[tuple[Entry, Entry | None]]] = {
        name: [(run, job["loss"]) for run in runs for job in run["jobs"] if job["name"] == name]
        for name in _job_names(summary)
    }
    found["all"] = [(run, run["loss"]) for run in runs]
    return found if runs else {}


def loss_points(loss: Entry, shown: Iterable[str]) -> list[float]:
    """The points of each part ``shown`` and their sum, rounded so that they add up."""
    parts = adding_up([loss.get(f"{_LOSS_KEYS[title]}_points", 0.0) for title in shown])
    return [*parts, sum(parts)]


def loss_cells(loss: Entry | None, shown: Collection[str]) -> list[str]:
    """A cell for each part ``shown``, and for their sum."""
    return [MISSING] * (len(shown) + 1) if loss is None else [f"{value:.1f}" for value in loss_points(loss, shown)]


def requests_of(summary: Summary) -> list[tuple[Entry, Entry]]:
    """(run, job) of all jobs that answered requests, job by job."""
    both = [(run, job) for run in summary["runs"] for job in run["jobs"] if value_at(job, "serving.requests")]
    return sorted(both, key=lambda each: _job_names(summary).index(each[1]["name"]))


def request_table(summary: Summary) -> Table | None:
    """A row per serving job and scheduler: times of its requests; None where there are none."""
    optional, notes = least_important(REQUEST_COLUMNS), notes_of(REQUEST_COLUMNS)
    right = _titles(REQUEST_COLUMNS)
    table = new_table("requests", left=("job", "scheduler"), right=right, optional=optional, notes=notes)
    for run, job in requests_of(summary):
        table.add_row(job["name"], marked_run(run), *_cells(job, REQUEST_COLUMNS))
    return table if table.rows else None


def manager_table(summary: Summary) -> Table | None:
    """A row per scheduler: completion times, queueing and preemptions of managed jobs; None where there are none."""
    runs = [run for run in summary["runs"] if run.get("manager")]
    if not runs:
        return None
    shown = columns([*OUTCOMES, *MANAGER])
    title = "cluster manager: times of jobs that ended"
    optional, notes = least_important(shown), notes_of(shown)
    table = new_table(title, left=("scheduler",), right=_titles(shown), optional=optional, notes=notes)
    for run in runs:
        table.add_row(marked_run(run), *_cells(run["manager"], shown))
    return table


def refusals(summary: Summary) -> list[str]:
    """A line for every job that could never start, or held some of its GPUs at the end of a run, once."""
    refused, held = _told(summary, "refused"), _told(summary, "partly_started")
    waiting = [f"{name} {what} at the end and waits for the rest" for name, what in held.items()]
    return [*(f"{name} was refused: {why}" for name, why in refused.items()), *waiting]


def _told(summary: Summary, key: str) -> dict[str, str]:
    """What the managers of all runs say of jobs under ``key``."""
    return {name: said for run in summary["runs"] for name, said in run.get("manager", {}).get(key, {}).items()}


def tables(summary: Summary) -> list[Table]:
    """All tables of a run, in the order they are shown."""
    others = (request_table(summary), manager_table(summary), split_table(summary))
    return [run_table(summary), job_table(summary), *(table for table in others if table)]


def comparison_tables(document: Mapping[str, Any]) -> list[Table]:
    """Several runs side by side, from :func:`testbed.metrics.comparison.side_by_side`.

    A row per run and scheduler, the JCT of every job, and the means over runs of one scenario.
    """
    runs, means = document["runs"], document["means"]
    return [_compared_runs(runs), _compared_jobs(runs), *([_compared_means(means)] if means else [])]


def unproven(document: Mapping[str, Any]) -> list[str]:
    """A line for every difference of :func:`testbed.metrics.comparison.side_by_side` that proves nothing."""
    lines = []
    for row in document["means"]:
        if row["gpu_utilization_points_proven"] is False:
            spread = row["gpu_utilization_points_spread"]
            why = "there is only one seed" if spread is None else f"its spread over the seeds is {spread:.1f}"
            name = f"{row['scenario']}, {row['engine']}, {row['scheduler']}"
            lines.append(f"{name}: {points_between(row[BASELINE], row['gpu_utilization'])} points prove nothing: {why}")
    if not document["means"] and any(row["gpu_utilization_points"] is not None for row in document["runs"]):
        lines.append("the points of single runs have no spread, and prove nothing: run several seeds (run --repeat N)")
    return lines


def beside_the_numbers(summary: Summary) -> list[str]:
    """A line for everything that the scenario or a file of it says and the numbers do not have."""
    return [line for key in ("failures_not_reached", "left_out_of_files", "no_effect") for line in summary.get(key, ())]


def show_summary(summary: Summary, console: Console | None = None) -> None:
    """Print everything there is to say at the end of a run."""
    out = console or output()
    show(tables(summary), out)
    say(schedulers_behind(summary), out)
    lines = [*doubts(summary), *left_out(summary), *refusals(summary), *beside_the_numbers(summary)]
    say(lines, out, style="yellow")
    say([*networks(summary), headline(summary)], out)


def _job_names(summary: Summary) -> list[str]:
    return list(dict.fromkeys(job["name"] for run in summary["runs"] for job in run["jobs"]))


def least_important(shown: Shown) -> list[str]:
    """Titles of the columns that a narrow terminal may leave out, the least important first."""
    ranked = sorted((column.optional, column.title) for _, column in shown if column.optional)
    return [title for _, title in ranked]


def notes_of(shown: Shown) -> dict[str, str]:
    """Title of a column -> what it means, where that needs words."""
    return {column.title: column.note for _, column in shown if column.note}


def _titles(shown: Shown) -> list[str]:
    return [column.title for _, column in shown]


def _cells(entry: Entry, shown: Shown) -> list[str]:
    return [column.cell(entry, metric.key) for metric, column in shown]


def _compared_runs(rows: Sequence[Mapping[str, Any]]) -> Table:
    right = ("seed", "GPU util %", "points")
    left = ("run", "engine", "scheduler")
    notes = {"points": POINTS_NOTE}
    table = new_table("runs", left=left, right=right, last="verdict", optional=("engine", "seed"), notes=notes)
    for row in rows:
        table.add_row(
            row["label"],
            row["engine"],
            row["scheduler"],
            str(row["seed"]),
            percent(row["gpu_utilization"]),
            points_between(row[BASELINE], row["gpu_utilization"]),
            row["verdict"],
        )
    return table


def _compared_jobs(rows: Sequence[Mapping[str, Any]]) -> Table:
    notes = {"+- %": JCT_CHANGE_NOTE}
    table = new_table("JCT", left=("job", "run", "scheduler"), right=("JCT s", "+- %"), notes=notes)
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


_MEANS_NOTES: Final = {
    "spread": "standard deviation of GPU util % over the runs",
    "points": f"{POINTS_NOTE}, \N{PLUS-MINUS SIGN} the largest between two seeds; in parentheses what proves nothing",
    "JCT +- %": JCT_CHANGE_NOTE,
}
"""Columns of the table of means -> their meaning."""


def _compared_means(rows: Sequence[Mapping[str, Any]]) -> Table:
    right = ("runs", "GPU util %", "spread", "points")
    apart = any(row["inputs"] for row in rows)
    left = ("scenario", "engine", "scheduler", *(("with",) if apart else ()))
    table = new_table("means", left=left, right=right, last="JCT +- %", optional=("engine",), notes=_MEANS_NOTES)
    for row in rows:
        jobs = ", ".join(f"{name} {change(value)}" for name, value in row["jct_change"].items())
        believable = "" if row["believable"] == row["runs"] else f" ({row['believable']} ok)"
        gain = row["gpu_utilization_points"]
        table.add_row(
            row["scenario"],
            row["engine"],
            row["scheduler"],
            *([_with(row["inputs"])] if apart else []),
            f"{row['runs']}{believable}",
            percent(row["gpu_utilization"]),
            percent(row["spread"]),
            MISSING if gain is None else _gain(row),
            jobs,
        )
    return table


def _gain(row: Mapping[str, Any]) -> str:
    shown = points_between(row[BASELINE], row["gpu_utilization"])
    return with_spread(row["gpu_utilization_points"], row["gpu_utilization_points_spread"], shown=shown)


def _with(inputs: Mapping[str, str]) -> str:
    """The inputs in which other runs of the scenario differ, by the last words of their keys."""
    return ", ".join(f"{key} {value}" for key, value in zip(short_names(list(inputs)), inputs.values(), strict=True))
