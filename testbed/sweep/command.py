"""What ``testbed sweep`` does: many runs of one scenario, on this machine or on a Ray cluster, and one table."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from testbed.engines.registry import create_engine
from testbed.errors import RunFailedError, TestbedError
from testbed.machine.compiler_notice import slow_engine, slow_flow_engine
from testbed.machine.distribution import package_version
from testbed.progress import Progress
from testbed.results.run_directory import RunDirectory
from testbed.scenario import load as load_scenario
from testbed.sweep import checking, running
from testbed.sweep.defaults import LOCAL, OUT
from testbed.sweep.loading import load
from testbed.sweep.on_ray import RayTasks
from testbed.sweep.processes import Processes
from testbed.sweep.store import BusyError, Store
from testbed.sweep.values import PointOutcome, Sweep, SweepPoint, worst

runner = running.PointRunner()
"""Runs one point; tests replace it by a plain function."""


def run(arguments: argparse.Namespace) -> int:
    """Run missing points, show all, and return the worst exit status of the points."""
    sweep = load(arguments.sweep)
    points = _points(sweep, arguments)
    store = Store(arguments.out or OUT / sweep.name, redo=arguments.redo)
    found = running.kept(points, store)
    if found:
        print(f"{len(found)} of {len(points)} points are kept from before in {store.out}", file=sys.stderr)
    try:
        if len(found) < len(points):
            executor = _executor(sweep, arguments, len(points) - len(found))
            if notice := _slow(sweep, arguments):
                print(notice, file=sys.stderr)
            with store.alone():
                running.work_off(points, store, executor, Progress(quiet=False), found)
    except BusyError:
        raise
    except (KeyboardInterrupt, TestbedError) as error:
        if found:
            _write(sweep, arguments, points, found, store)
        raise _stopped(error, arguments, len(points), found, store) from None
    _show(sweep, arguments, _write(sweep, arguments, points, found, store), store)
    return worst({point.name: found[point].exit_status(arguments.allow_degraded) for point in points})


def _stopped(
    error: KeyboardInterrupt | TestbedError,
    arguments: argparse.Namespace,
    count: int,
    found: Mapping[SweepPoint, PointOutcome],
    store: Store,
) -> TestbedError:
    """The error that ends a sweep early: the reason, what is kept, and how to resume."""
    done = sum(not outcome.problem for outcome in found.values())
    kept = f"{done} of {count} points are kept in {store.out}; go on with: {_resume_command(arguments)}"
    if isinstance(error, KeyboardInterrupt):
        return RunFailedError(f"testbed: interrupted; {kept}")
    return type(error)(f"{error}\n{kept}" if found else str(error))


def _points(sweep: Sweep, arguments: argparse.Namespace) -> tuple[SweepPoint, ...]:
    """The points, with every combination checked under a progress bar."""
    emulates_here = sweep.engine == "emulation" and arguments.on == "here"
    resolve = checking.resolve_and_scale if emulates_here else checking.resolve
    count = len(sweep.combinations())
    with Progress(quiet=False) as progress:
        progress.phase(f"checking {count} {'combination' if count == 1 else 'combinations'}", count)
        return checking.points_of(sweep, version=package_version(), resolve=resolve, tick=progress.advance_to)


def _slow(sweep: Sweep, arguments: argparse.Namespace) -> str:
    """The line that says how much longer the points take without the compiler, for the slowest of them; or empty."""
    if sweep.engine != "flow" or arguments.on != "here":
        return slow_engine(sweep.engine, "") if arguments.on == "here" else ""
    varied = next((axis.values for axis in sweep.axes if axis.key == "sharing"), ())
    return slow_flow_engine(*(varied or [load_scenario(sweep.scenario).sharing]))


def _executor(sweep: Sweep, arguments: argparse.Namespace, todo: int) -> running.Executor:
    """Return what runs ``todo`` points; ``CannotRunError`` if this machine cannot, or Ray is missing."""
    if arguments.on == "ray":
        return RayTasks(runner, arguments.ray_address, package_version(), arguments.processes)
    create_engine(sweep.engine).check()
    at_a_time = 1 if sweep.engine == "emulation" else arguments.processes or len(os.sched_getaffinity(0))
    return Processes(runner, min(at_a_time, todo))


def _write(
    sweep: Sweep,
    arguments: argparse.Namespace,
    points: Sequence[SweepPoint],
    found: Mapping[SweepPoint, PointOutcome],
    store: Store,
) -> dict[str, object]:
    """Write ``sweep.json``, ``sweep.csv`` and ``report.html`` beside the points; returns the document of the first."""
    from testbed.report import runs_index
    from testbed.report.comparison import page
    from testbed.report.comparison.compared_runs import collect
    from testbed.sweep import table

    document = table.document(sweep, _resume_command(arguments), points, found)
    directory = RunDirectory(store.out)
    directory.write_json("sweep.json", document)
    directory.write_text("sweep.csv", table.csv_text(sweep, points, found))
    if any(outcome.results for outcome in found.values()):
        page.write(collect([store.out]), store.out, f"sweep {sweep.name}")
    if arguments.out is None:
        runs_index.update_or_say(OUT.parent)
    return document


def _show(sweep: Sweep, arguments: argparse.Namespace, document: Mapping[str, object], store: Store) -> None:
    from testbed.report.tables import show
    from testbed.sweep.table import table

    if arguments.json:
        print(json.dumps(document, indent=1))
        return
    rows = document["rows"]
    assert isinstance(rows, list)
    show([table(sweep, rows)])
    print(f"files: {store.out}", file=sys.stderr)


def _resume_command(arguments: argparse.Namespace) -> str:
    """The command that resumes the sweep."""
    words = ["python", "-m", "testbed", "sweep", arguments.sweep]
    words += [] if arguments.out is None else ["--out", str(arguments.out)]
    words += [] if arguments.processes is None else ["--processes", str(arguments.processes)]
    words += [] if arguments.on == "here" else ["--on", arguments.on]
    words += [] if arguments.ray_address == LOCAL else ["--ray-address", arguments.ray_address]
    words += [f"--{name.replace('_', '-')}" for name in ("redo", "json", "allow_degraded") if getattr(arguments, name)]
    return shlex.join(words)
