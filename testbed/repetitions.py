"""Repetitions of a simulation at line rate with successive seeds, several at a time: each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from testbed.api import RUNS, Prepared, RunResult, say_first
from testbed.progress import Progress
from testbed.report import runs_index
from testbed.side_by_side import Tell, each_in_a_process, processes_for


def each_by_itself(prepared: Prepared) -> bool:
    """Whether runs of ``prepared`` take long, and depend on nothing that happens beside them."""
    return all(experiment.at_line_rate for experiment in prepared.experiments)


def repeated(prepared: Prepared, once: Callable[[int], RunResult], count: int, out: Path | None) -> list[RunResult]:
    """What ``once`` returns for each offset of the seed; it is silent, and lists no run in the index of ``out``."""
    processes = processes_for(count)

    def task(offset: int, _tell: Tell) -> RunResult:
        return once(offset)

    with Progress(quiet=False) as progress:
        say_first(prepared, "simulation", progress)
        progress.phase(f"{count} repetitions, {processes} at a time", count)
        results = each_in_a_process([partial(task, offset) for offset in range(count)], processes, progress)
    runs_index.update_or_say(RUNS if out is None else out)
    return results
