"""``testbed validate``: check a scenario, and report every error with its line."""

from __future__ import annotations

import argparse

from testbed.cli.arguments import add_overrides, add_scenario
from testbed.errors import EXIT_OK

NAME = "validate"
HELP = "check a scenario file: valid, or what is wrong with it line by line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the scenario and its overrides."""
    add_scenario(parser)
    add_overrides(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line if the scenario is valid; raises :class:`testbed.errors.BadInputError` if not."""
    from testbed.experiment.left_out import left_out_of_files
    from testbed.scenario import build_fabric, build_jobs, build_managed, load

    scenario = load(arguments.scenario, arguments.overrides)
    fabric = build_fabric(scenario)
    jobs, managed = build_jobs(scenario, fabric), build_managed(scenario, fabric)
    used = len({gpu for job in jobs for gpu in job.gpus})
    schedulers = ", ".join(choice.described for choice in scenario.choices)
    count = len(jobs) if managed is None else len(managed.submissions)
    noun = "job" if count == 1 else "jobs"
    where = f"on {used} of" if managed is None else "placed by a manager on"
    print(f"{scenario.name}: valid ({count} {noun} {where} {len(fabric.gpus)} GPUs, schedulers {schedulers})")
    for line in left_out_of_files(jobs, managed):
        print(line)
    return EXIT_OK
