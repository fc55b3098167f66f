"""A finished run as pandas data frames: iterations, links, decisions, jobs and schedulers.

The columns and their units are in ``docs``, in the page about results; every frame begins with ``scheduler``, so
that frames of several schedulers, or runs, can be joined. pandas is imported when a frame is made, not before:
the testbed itself does not need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from testbed.experiment.experiment import Experiment
from testbed.machine.distribution import require_extra
from testbed.results.link_samples import sample_starts
from testbed.results.record import DecisionRow, RunRecord
from testbed.results.row_files import ITERATION_COLUMNS, LINK_COLUMNS, MESSAGE_COLUMNS
from workloads.job import Flow

if TYPE_CHECKING:
    from pandas import DataFrame

ITERATIONS: Final = ("scheduler", *ITERATION_COLUMNS, "measured")
MESSAGES: Final = ("scheduler", *MESSAGE_COLUMNS, "completion_s", "slowdown")
LINKS: Final = ("scheduler", *LINK_COLUMNS, "interval_s", "kind", "capacity", "load")
DECISIONS: Final = ("scheduler", "time_s", "cause", "confirmed_s", "job", "flow", "level", "rate", "path")


def iterations_frame(records: Iterable[RunRecord]) -> DataFrame:
    """A row per GPU and iteration: the columns of ``iterations.csv``, in seconds.

    ``measured``: it lies whole inside the window of its job, and nothing disturbed it.
    """
    columns: dict[str, list[object]] = {name: [] for name in ITERATIONS}
    for record in records:
        rows = record.iterations
        columns["scheduler"] += [record.scheduler] * len(rows)
        for name in ITERATION_COLUMNS:
            columns[name] += [getattr(row, name) for row in rows]
        windows = record.windows
        columns["measured"] += [
            row.job in windows
            and not row.disturbed
            and windows[row.job].start_s <= row.start_s
            and row.end_s <= windows[row.job].end_s
            for row in rows
        ]
    return _pandas().DataFrame(columns)


def messages_frame(records: Iterable[RunRecord]) -> DataFrame:
    """A row per message: the columns of ``messages.csv``, in seconds and bytes.

    ``completion_s``: its flow completion time; ``slowdown``: that divided by the time in an empty network.
    """
    columns: dict[str, list[object]] = {name: [] for name in MESSAGES}
    for record in records:
        columns["scheduler"] += [record.scheduler] * len(record.messages)
        for name in MESSAGES[1:]:
            columns[name] += [getattr(row, name) for row in record.messages]
    return _pandas().DataFrame(columns)


def links_frame(records: Iterable[RunRecord], experiment: Experiment) -> DataFrame:
    """A row per sample, link and level: the columns of ``links.csv``, in seconds and bytes.

    ``interval_s``: since the sample before; ``capacity``: bit/s of the link; ``load``: the share of it that the row's
    bytes took. A link that is not in the fabric has no kind, capacity and load.
    """
    links = experiment.fabric.links
    columns: dict[str, list[Any]] = {name: [] for name in LINKS}
    for record in records:
        rows, starts = record.links, sample_starts(record.links)
        columns["scheduler"] += [record.scheduler] * len(rows)
        for name in LINK_COLUMNS:
            columns[name] += [getattr(row, name) for row in rows]
        columns["interval_s"] += [row.time_s - starts[row.time_s] for row in rows]
        columns["kind"] += [links[row.link].kind if row.link in links else None for row in rows]
        columns["capacity"] += [links[row.link].capacity if row.link in links else None for row in rows]
    frame = _pandas().DataFrame(columns | {"load": 0.0})
    frame["capacity"] = frame["capacity"].astype(float)
    frame["load"] = 8 * frame["bytes"] / frame["interval_s"] / frame["capacity"]
    return frame


def decisions_frame(records: Iterable[RunRecord], experiment: Experiment) -> DataFrame:
    """A row per decision and flow: when it came into force, why, and what it says about the flow.

    ``level`` and ``rate`` (bit/s) are missing where the scheduler decided none; ``path`` is a tuple of links.
    """
    rows: list[tuple[object, ...]] = []
    for record in records:
        jobs = (*record.jobs_of(experiment.jobs), *(record.managed.stints if record.managed else ()))
        flows = {flow.id: flow for job in jobs for flow in job.flows}
        for row in record.decisions:
            rows += [(record.scheduler, *_decided(row, flow, flows.get(flow))) for flow in row.decision.paths]
    frame = _pandas().DataFrame(rows, columns=list(DECISIONS))
    frame["level"] = frame["level"].astype("Int64")
    frame["rate"] = frame["rate"].astype(float)
    return frame


def _decided(row: DecisionRow, flow: str, known: Flow | None) -> tuple[object, ...]:
    decision, job = row.decision, known.job if known else None
    level = decision.levels.get(flow, decision.levels.get(job) if job is not None else None)
    return row.time_s, row.cause, row.confirmed_s, job, flow, level, decision.rates.get(flow), decision.paths[flow]


def jobs_frame(summary: Mapping[str, Any]) -> DataFrame:
    """A row per scheduler and ``job``: the numbers of ``summary.json``; what is nested there has a dot in its name."""
    rows = [{"scheduler": run["scheduler"], **job} for run in summary["runs"] for job in run["jobs"]]
    frame = _normalised(rows).rename(columns={"name": "job"})
    return frame.astype({"level": "Int64"}) if "level" in frame else frame


def schedulers_frame(summary: Mapping[str, Any]) -> DataFrame:
    """A row per scheduler: the numbers of ``summary.json`` about all jobs, its verdict and its gain.

    ``gpu_utilization_points`` is against the baseline, in percentage points; missing for the baseline itself.
    """
    rows = []
    for run in summary["runs"]:
        own = {key: value for key, value in run.items() if key != "jobs"}
        against = summary["comparison"].get(run["scheduler"])
        points = against["gpu_utilization_points"] if isinstance(against, Mapping) else None
        rows.append(own | {"gpu_utilization_points": points})
    return _normalised(rows)


def _normalised(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    return _pandas().json_normalize([dict(row) for row in rows], max_level=1)


def _pandas() -> Any:
    require_extra("notebook")
    import pandas

    return pandas
