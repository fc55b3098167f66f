"""``export RUN``: what ran, in the form of another tool."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli.arguments import add_run_directories
from testbed.errors import EXIT_OK, BadInputError

if TYPE_CHECKING:
    from testbed.results.run_directory import RunDirectory
    from testbed.scenario import Scenario
    from topologies.fabric import Fabric
    from workloads.job import Job

NAME = "export"
HELP = "write what ran as Chakra execution traces or a GOAL schedule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, the form and where to write."""
    add_run_directories(parser, "directory of a finished run")
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--chakra", action="store_true", help="Chakra execution traces (.et), one per rank")
    form.add_argument("--goal", action="store_true", help="one iteration of all jobs as a GOAL schedule (LogGOPSim)")
    parser.add_argument("--scheduler", metavar="LABEL", help="the run of this scheduler only (default: of all)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/chakra, RUN/goal)")


def run(arguments: argparse.Namespace) -> int:
    """Write a folder of traces for each scheduler and job, or one schedule, and print where."""
    form = "goal" if arguments.goal else "chakra"
    for directory in arguments.directory:
        out = arguments.out or directory / form
        written = [_schedule(directory, out)] if arguments.goal else _traces(directory, out, arguments.scheduler)
        for place in written:
            print(place)
    return EXIT_OK


def _jobs(directory: Path) -> tuple[RunDirectory, Scenario, Fabric, tuple[Job, ...]]:
    """The run, its scenario, and the fabric and jobs of that."""
    from testbed.results.run_directory import RunDirectory
    from testbed.scenario import build_fabric, build_jobs, load

    opened = RunDirectory.open(directory)
    scenario = load(opened.place("scenario.yaml"))
    if scenario.manager is not None:
        raise BadInputError(f"{directory}: its jobs were placed by a manager, expected a run without one")
    fabric = build_fabric(scenario)
    return opened, scenario, fabric, tuple(build_jobs(scenario, fabric))


def _schedule(directory: Path, out: Path) -> Path:
    from testbed.results.trace.goal import schedule

    _, scenario, fabric, jobs = _jobs(directory)
    if (served := next((job for job in jobs if job.served), None)) is not None:
        raise BadInputError(f"{directory}: job {served.name} answers requests, expected iterations that are alike")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{scenario.name}.goal"
    path.write_text(schedule(jobs, fabric).text(), "utf-8")
    return path


def _traces(directory: Path, out: Path, label: str | None) -> list[Path]:
    from testbed.results.trace.chakra import process_groups, traces

    opened, scenario, fabric, jobs = _jobs(directory)
    records = [record for record in opened.read_records() if label in (None, record.scheduler)]
    if not records:
        known = ", ".join(choice.label for choice in scenario.choices)
        raise BadInputError(f"{directory}: no scheduler '{label}', expected one of {known}")
    written = []
    for record in records:
        for job in jobs:
            folder = out / record.scheduler / job.name
            folder.mkdir(parents=True, exist_ok=True)
            for rank, trace in traces(job, fabric, record.iterations).items():
                (folder / f"{job.name}.{rank}.et").write_bytes(trace)
            if groups := process_groups(job):
                (folder / "comm_groups.json").write_text(json.dumps(groups), "utf-8")
            written.append(folder)
    return written
