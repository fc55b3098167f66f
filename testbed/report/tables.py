"""The numbers of a run as tables that line up; made from the document ``summary.json`` alone."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from topologies.units import format_work

Summary = Mapping[str, Any]
MISSING = "-"
MIN_WIDTH = 100
_WIDEST = 1000
SPANS_SHOWN = 3


def percent(value: float | None, digits: int = 1) -> str:
    """``0.655`` -> ``65.5``; the column's head says %."""
    return MISSING if value is None else f"{100 * value:.{digits}f}"


def points(value: float | None) -> str:
    """``13`` -> ``+13.0``."""
    return MISSING if value is None else f"{value:+.1f}"


def seconds(value: float | None, digits: int = 3) -> str:
    """``1.7`` -> ``1.700``; the column's head says s."""
    return MISSING if value is None else f"{value:.{digits}f}"


def change(value: float | None) -> str:
    """``-0.18`` -> ``-18.0``; the column's head says %."""
    return MISSING if value is None else f"{100 * value:+.1f}"


def idle_shares(entry: Mapping[str, Any]) -> tuple[float, float, float]:
    """Exposed, straggler and start idle time as shares of the allocated GPU time of a run or a job."""
    allocated = entry.get("allocated_gpu_s") or 0.0
    idle = entry["gpu_idle_s"]
    exposed, straggler, start = (
        idle[cause] / allocated if allocated else 0.0 for cause in ("exposed", "straggler", "start")
    )
    return exposed, straggler, start


def new_table(title: str, *, left: Sequence[str], right: Sequence[str] = (), last: str = "") -> Table:
    """An empty table: columns of text, of numbers, and a last one of text that may wrap."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True
    )
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right")
    if last:
        table.add_column(last)
    return table


def run_table(summary: Summary) -> Table:
    """A row per scheduler: utilisation, points against the baseline, idle time by cause, verdict."""
    title = f"{summary['scenario']}, {summary['engine']}, seed {summary['seed']}"
    right = ("GPU util %", "points", "exposed %", "straggler %", "start %", "work")
    table = new_table(title, left=("scheduler",), right=right, last="verdict")
    for run in summary["runs"]:
        against = summary["comparison"].get(run["scheduler"])
        gain = against["gpu_utilization_points"] if isinstance(against, Mapping) else None
        shares = (percent(share) for share in idle_shares(run))
        table.add_row(
            run["scheduler"],
            percent(run["gpu_utilization"]),
            points(gain),
            *shares,
            format_work(run["work_flop"]),
            verdict(run),
        )
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


def finding_table(summary: Summary) -> Table | None:
    """A row for everything that was not as it should be in a run, with its seconds; None if there was nothing."""
    rows = [(run, finding) for run in summary["runs"] for finding in run["fidelity"].get("findings", ())]
    if not rows:
        return None
    table = new_table("not as it should be", left=("scheduler", "kind"), right=("from s", "to s"), last="what")
    for run, finding in rows:
        note = " (iterations left out)" if finding["discarded"] else ""
        table.add_row(
            str(run["scheduler"]),
            finding["kind"],
            seconds(finding["from_s"], 1),
            seconds(finding["to_s"], 1),
            finding["what"] + note,
        )
    return table


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


def doubts(summary: Summary) -> list[str]:
    """A line for every reason not to believe a run; none if all are ``ok``."""
    return [
        f"{run['scheduler']} is {verdict(run)}: {reason}"
        for run in summary["runs"]
        if verdict(run) != "ok"
        for reason in (run["fidelity"]["reasons"] or ["no reason given"])
    ]


def job_table(summary: Summary) -> Table:
    """A row per job and scheduler: level, iteration time, utilisation, JCT and its change."""
    right = ("GPUs", "level", "iter", "mean s", "p50 s", "p99 s", "util %", "JCT s", "+- %")
    table = new_table("jobs (JCT projected; with * measured)", left=("job", "scheduler"), right=right)
    for name in _job_names(summary):
        for place, run in enumerate(summary["runs"]):
            job = next((job for job in run["jobs"] if job["name"] == name), None)
            if job is not None:
                against = summary["comparison"].get(run["scheduler"])
                shift = against["jct_change"].get(name) if isinstance(against, Mapping) else None
                table.add_row(name if place == 0 else "", *_job_cells(run, job), change(shift))
        table.add_section()
    return table


def split_table(summary: Summary) -> Table | None:
    """A row per job: points of its GPU utilisation lost to its own flows and to other jobs, by scheduler.

    None if nothing could be taken apart.
    """
    runs = [run for run in summary["runs"] if run.get("loss")]
    if not runs:
        return None
    right = [f"{marked_run(run)}: {part}" for run in runs for part in ("own", "others")]
    table = new_table("points of GPU utilisation lost to flows that meet", left=("job",), right=right)
    for name in _job_names(summary):
        table.add_row(name, *(cell for run in runs for cell in _loss_cells(_loss(run, name))))
    table.add_section()
    table.add_row("all", *(cell for run in runs for cell in _loss_cells(run["loss"])))
    return table


def manager_table(summary: Summary) -> Table | None:
    """A row per scheduler: completion times, queueing and preemptions of managed jobs; None where there are none."""
    runs = [run for run in summary["runs"] if run.get("manager")]
    if not runs:
        return None
    right = ("mean s", "p50", "p95", "p99", "queue s", "all s", "held %", "stops", "migrations", "hosts", "open")
    title = "JCT, time without GPUs (queue), time until all ended, GPUs held, preemptions, migrations, hosts of a job"
    table = new_table(title, left=("scheduler",), right=right)
    for run in runs:
        found = run["manager"]
        times = (found[f"{name}_s"] for name in ("jct_mean", "jct_p50", "jct_p95", "jct_p99", "queue_mean", "makespan"))
        table.add_row(
            marked_run(run),
            *(seconds(value, 1) for value in times),
            percent(found["allocated"]),
            f"{found['preemptions']:.0f}",
            f"{found['migrations']:.0f}",
            f"{found['hosts_per_job']:.1f}",
            str(len(found["unfinished"])),
        )
    return table


def refusals(summary: Summary) -> list[str]:
    """A line for every job that could never start, once."""
    refused = {name: why for run in summary["runs"] for name, why in run.get("manager", {}).get("refused", {}).items()}
    return [f"{name} was refused: {why}" for name, why in refused.items()]


def tables(summary: Summary) -> list[Table]:
    """All tables of a run, in the order they are shown."""
    others = (manager_table(summary), split_table(summary))
    return [run_table(summary), job_table(summary), *(table for table in others if table)]


def show(tables_to_show: Iterable[Table], console: Console | None = None) -> None:
    """Print tables; on standard output unless a console is given, and then as wide as they are."""
    out = console or _console()
    for table in tables_to_show:
        if console is None:
            out.width = max(out.width, Measurement.get(out, out.options.update(width=_WIDEST), table).maximum)
        out.print(table)


def show_summary(summary: Summary, console: Console | None = None) -> None:
    """Print everything there is to say at the end of a run."""
    out = console or _console()
    show(tables(summary), out)
    for line in [*doubts(summary), *left_out(summary), *refusals(summary)]:
        out.print(line, markup=False, highlight=False, style="yellow")


def render(tables_to_show: Iterable[Table], width: int = 140) -> str:
    """The tables as plain text."""
    stream = io.StringIO()
    show(tables_to_show, Console(file=stream, width=width, color_system=None))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _console() -> Console:
    """Standard output; wide enough for the tables, for a cut number is worse than a wrapped line."""
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    return console


def _job_names(summary: Summary) -> list[str]:
    return list(dict.fromkeys(job["name"] for run in summary["runs"] for job in run["jobs"]))


def _job_cells(run: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    times = job["iteration_s"]
    disturbed = f" (+{job['disturbed']})" if job.get("disturbed") else ""
    jct = "*" if job["jct_is"] == "measured" else ""
    return [
        marked_run(run),
        str(job["gpus"]),
        MISSING if job["level"] is None else str(job["level"]),
        f"{job['iterations']}{disturbed}",
        *(seconds(times[key]) for key in ("mean", "p50", "p99")),
        percent(job["gpu_utilization"]),
        seconds(job["jct_s"], 1) + jct,  # a star: the job ended, nothing is projected
    ]


def _loss(run: Mapping[str, Any], name: str) -> Mapping[str, float] | None:
    return next((job["loss"] for job in run["jobs"] if job["name"] == name), None)


def _loss_cells(loss: Mapping[str, float] | None) -> tuple[str, str]:
    if loss is None:
        return MISSING, MISSING
    return f"{loss['own_points']:.1f}", f"{loss['others_points']:.1f}"
