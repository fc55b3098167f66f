"""``export RUN --chakra``: what ran, in the form of another tool."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from testbed.cli.arguments import add_run_directories
from testbed.errors import EXIT_OK, BadInputError

NAME = "export"
HELP = "write what ran as Chakra execution traces"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, the form and where to write."""
    add_run_directories(parser, "directory of a finished run")
    parser.add_argument(
        "--chakra", action="store_true", required=True, help="Chakra execution traces (.et), one per rank"
    )
    parser.add_argument("--scheduler", metavar="LABEL", help="the run of this scheduler only (default: of all)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/chakra)")


def run(arguments: argparse.Namespace) -> int:
    """Write a folder of traces for each scheduler and job, and print where."""
    for directory in arguments.directory:
        for folder in _export(directory, arguments.out or directory / "chakra", arguments.scheduler):
            print(folder)
    return EXIT_OK


def _export(directory: Path, out: Path, label: str | None) -> list[Path]:
    from testbed.results.run_directory import RunDirectory
    from testbed.results.trace.chakra import process_groups, traces
    from testbed.scenario import build_fabric, build_jobs, load

    opened = RunDirectory.open(directory)
    scenario = load(opened.place("scenario.yaml"))
    if scenario.manager is not None:
        raise BadInputError(f"{directory}: its jobs were placed by a manager, expected a run without one")
    fabric = build_fabric(scenario)
    jobs = build_jobs(scenario, fabric)
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
