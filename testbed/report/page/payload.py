"""Everything that ``report.html`` shows, as one JSON-ready value; ``README.md`` beside this file describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controller.decision import Decision
from testbed.experiment.experiment import Experiment
from testbed.report.headline import headline
from testbed.report.page.encoding import loads_u8, u8
from testbed.report.page.evidence_view import evidence_items, evidence_over_time
from testbed.report.page.fabric_view import fabric_view, shown_links
from testbed.report.page.failures_view import failures_table
from testbed.report.page.job_loads import JobLoads, job_loads
from testbed.report.page.queues_view import queue_table
from testbed.report.page.tables_view import table_views
from testbed.report.page.timeline import MAX_ROWS, gpu_rows, timeline_view
from testbed.report.tables import (
    beside_the_numbers,
    doubts,
    idle_shares,
    left_out,
    marked,
    networks,
    refusals,
    schedulers_behind,
)
from testbed.results.failed_parts import failed_parts
from testbed.results.record import DecisionRow, RunRecord
from topologies.fabric import Link
from workloads.job import Job

Summary = Mapping[str, Any]
MAX_DECISIONS: Final = 500
"""Decisions listed for a run; of more every n-th is."""
MAX_PATHS: Final = 20_000
"""Connections whose path at the end is listed."""
MAX_LEVELS: Final = 60
"""Levels listed for a decision."""


def payload(
    summary: Summary,
    records: Sequence[RunRecord],
    experiment: Experiment,
    manifest: Mapping[str, Any] | None = None,
    changed: Sequence[str] = (),
) -> dict[str, Any]:
    """The value; ``changed`` are files that are not as the run left them."""
    managed = any(record.managed is not None for record in records)
    jobs = _job_names(experiment, records)
    rows = gpu_rows(experiment, managed)
    links = shown_links(experiment.fabric, records)
    return {
        "kind": "run",
        "scenario": str(summary["scenario"]),
        "engine": summary["engine"],
        "seed": summary["seed"],
        "scale": summary["scale"],
        "headline": headline(summary),
        "doubts": doubts(summary),
        "changed": list(changed),
        "left_out": [*beside_the_numbers(summary), *left_out(summary), *networks(summary)],
        "schedulers_behind": schedulers_behind(summary),
        "refusals": refusals(summary),
        "jobs": jobs,
        "managed": managed,
        "levels": experiment.levels,
        "fabric": fabric_view(experiment.fabric, links),
        "gpu_rows": {"job": [_index(jobs, job) for job, _ in rows], "gpu": [gpu for _, gpu in rows]},
        "tables": [
            *table_views(summary),
            *filter(None, [failures_table(records), queue_table(records, experiment.fabric)]),
        ],
        "idle": _idle(summary),
        "evidence_items": evidence_items(),
        "runs": [
            _run(record, entry, experiment, jobs, rows, links, MAX_ROWS // max(1, len(records)))
            for record, entry in zip(records, summary["runs"], strict=True)
        ],
        "manifest": dict(manifest) if manifest else None,
    }


def _run(
    record: RunRecord,
    entry: Summary,
    experiment: Experiment,
    jobs: Sequence[Mapping[str, Any]],
    rows: Sequence[tuple[str, str]],
    links: Sequence[Link],
    limit: int,
) -> dict[str, Any]:
    stints, job_of = _stints(record, experiment, jobs)
    loads = job_loads(record, stints, job_of, links, experiment.levels)
    return {
        "scheduler": record.scheduler,
        "title": marked(record.scheduler, record.fidelity.verdict),
        "verdict": record.fidelity.verdict,
        "engine": record.engine,
        "duration_s": record.duration_s,
        "windows": [[name, window.start_s, window.end_s] for name, window in record.windows.items()],
        "fidelity": entry["fidelity"],
        "job_numbers": {job["name"]: {"level": job["level"], "util": job["gpu_utilization"]} for job in entry["jobs"]},
        "loads": None if loads is None else loads_view(loads),
        "timeline": timeline_view(record, stints, job_of, rows, limit),
        "failures": [[part.name, part.from_s, part.until_s] for part in failed_parts(record)],
        "decisions": _decisions(record.decisions, links),
        "evidence": evidence_over_time(record, experiment.scale.time),
    }


def loads_view(loads: JobLoads) -> dict[str, Any]:
    """JSON-ready: ``edges_s``, ``series`` [[link, job, level]] and their ``values``, one after the other."""
    series = [[int(a), int(b), int(c)] for a, b, c in zip(loads.link, loads.job, loads.level, strict=True)]
    return {
        "edges_s": [round(float(edge), 9) for edge in loads.edges_s],
        "series": series,
        "values": u8(loads_u8(loads.loads)),
    }


def _job_names(experiment: Experiment, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Name, model and number of GPUs of every job that any run placed, each once."""
    placed = [(job.name, job) for job in experiment.jobs]
    for record in records:
        if record.managed is not None:
            by_name = {job.name: job for job in record.managed.stints}
            placed += [
                (name, by_name[stint])
                for name, stints in record.managed.stints_of.items()
                for stint in stints[:1]
                if stint in by_name
            ]
    return [{"name": name, "model": job.model, "gpus": len(job.gpus)} for name, job in dict(placed).items()]


def _stints(
    record: RunRecord, experiment: Experiment, jobs: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Job], list[int]]:
    """The jobs of ``record`` as placed, and the index on the page of each."""
    index = {job["name"]: place for place, job in enumerate(jobs)}
    if record.managed is None:
        return record.jobs_of(experiment.jobs), [index[job.name] for job in experiment.jobs]
    owner = {stint: name for name, stints in record.managed.stints_of.items() for stint in stints}
    stints = [job for job in record.managed.stints if job.name in owner]
    return stints, [index[owner[job.name]] for job in stints]


def _index(jobs: Sequence[Mapping[str, Any]], name: str) -> int:
    return next((place for place, job in enumerate(jobs) if job["name"] == name), -1)


def _idle(summary: Summary) -> list[dict[str, Any]]:
    """Idle GPU time by cause in percent of the time allocated: of all jobs and each, under every scheduler."""
    found = []
    for run in summary["runs"]:
        name = marked(str(run["scheduler"]), run["fidelity"]["verdict"])
        for job, entry in [("all jobs", run), *((job["name"], job) for job in run["jobs"])]:
            exposed, straggler, start = (round(100 * share, 2) for share in idle_shares(entry))
            found.append({"job": job, "run": name, "exposed": exposed, "straggler": straggler, "start": start})
    return found


def _decisions(rows: Sequence[DecisionRow], links: Sequence[Link]) -> dict[str, Any]:
    """Time, cause and levels of each decision, and the paths in force at the end as indices of links."""
    index = {link.name: place for place, link in enumerate(links)}
    last = rows[-1].decision.paths if rows else {}
    return {
        "rows": [_decision(row) for row in rows[:: -(-len(rows) // MAX_DECISIONS) or 1]],
        "count": len(rows),
        "paths": [
            [flow, [index[link] for link in path if link in index]] for flow, path in list(last.items())[:MAX_PATHS]
        ],
    }


def _decision(row: DecisionRow) -> list[Any]:
    decision = row.decision
    return [round(row.time_s, 9), row.cause, round(1e3 * row.confirmed_s, 6), len(decision.paths), _levels(decision)]


def _levels(decision: Decision) -> str:
    if not decision.levels:
        return "one level for all"
    ranked = sorted(decision.levels.items(), key=lambda item: item[::-1])
    shown = ", ".join(f"{name}: {level}" for name, level in ranked[:MAX_LEVELS])
    return f"{shown} and {len(ranked) - MAX_LEVELS} more" if len(ranked) > MAX_LEVELS else shown
