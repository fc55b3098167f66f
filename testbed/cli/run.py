"""``testbed run``: run a scenario under each of its schedulers in turn, and compare them."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli.arguments import add_changes, add_datapath, add_engine, add_scenario, positive
from testbed.errors import EXIT_OK

if TYPE_CHECKING:
    from testbed.api import RunResult
    from testbed.watch.watcher import Watcher

NAME = "run"
HELP = "run a scenario under each of its schedulers and compare them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the scenario and what can be changed about it."""
    add_scenario(parser)
    add_engine(parser)
    add_changes(parser)
    add_datapath(parser)
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="run N times, with successive seeds")
    parser.add_argument(
        "--scale-of", type=Path, metavar="RUN", help="the scale of a finished run, instead of one measured now"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where run directories go (default: runs)")
    parser.add_argument("--json", action="store_true", help="print summary.json (an array of them with --repeat)")
    parser.add_argument(
        "--watch", action="store_true", help="show jobs and links while the run goes on, here and on a page of its own"
    )
    parser.add_argument("--allow-degraded", action="store_true", help="status 0 even if the verdict is not ok")
    parser.add_argument(
        "--discard-disturbed",
        action="store_true",
        help="leave out, list and replace iterations that a fault limited in time touched",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run, show, and return the worst status of the repetitions."""
    with contextlib.ExitStack() as stack:
        watcher = _watcher(arguments, stack)
        results = _results(arguments, watcher)
    if arguments.json:
        documents = [result.summary for result in results]
        print(json.dumps(documents[0] if arguments.repeat == 1 else documents, indent=1))
    elif len(results) > 1:
        _show_repetitions([result.directory for result in results])
    return max((result.status for result in results), default=EXIT_OK)


def _watcher(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> Watcher | None:
    """What shows the runs while they go on, until ``stack`` ends; None if nobody watches."""
    if not arguments.watch:
        return None
    if arguments.engine != "emulation":
        what = "flow engine" if arguments.engine == "flow" else arguments.engine
        print(f"watch: the {what} computes its results at once, there is nothing to watch", file=sys.stderr)
        return None
    from testbed.watch.watcher import Watcher

    return stack.enter_context(Watcher())


def _results(arguments: argparse.Namespace, watcher: Watcher | None) -> list[RunResult]:
    """Of each repetition, shown: one after the other, or several at a time where each is a simulation at line rate."""
    if arguments.repeat > 1 and arguments.engine == "simulation":
        from testbed.api import prepare
        from testbed.repetitions import each_by_itself, repeated

        prepared = prepare(
            arguments.scenario,
            engine=arguments.engine,
            schedulers=arguments.scheduler,
            overrides=arguments.overrides,
            datapath=arguments.datapath,
        )
        if each_by_itself(prepared):
            results = repeated(prepared, partial(_run_once, arguments), arguments.repeat, arguments.out)
            for result in results:
                _show(arguments, result)
            return results
    results = []
    for offset in range(arguments.repeat):
        first = results[0].directory if results and arguments.engine == "emulation" else None
        results.append(_run_once(arguments, offset, watcher, first, alone=True))
        _show(arguments, results[-1])
    return results


def _run_once(
    arguments: argparse.Namespace,
    offset: int,
    watcher: Watcher | None = None,
    first: Path | None = None,
    alone: bool = False,
) -> RunResult:
    """Run repetition ``offset``, at the scale of the ``first`` one; silent if it is not ``alone``."""
    from testbed.api import run_scenario

    return run_scenario(
        arguments.scenario,
        engine=arguments.engine,
        schedulers=arguments.scheduler,
        overrides=arguments.overrides,
        seed=_seed(arguments, offset),
        datapath=arguments.datapath,
        out=arguments.out,
        quiet=not alone,
        allow_degraded=arguments.allow_degraded,
        discard_disturbed=arguments.discard_disturbed,
        watcher=watcher,
        index=alone,
        scale_of=arguments.scale_of or first,
    )


def _seed(arguments: argparse.Namespace, offset: int) -> int | None:
    """The seed of repetition ``offset``; None keeps the scenario's."""
    if arguments.repeat == 1:
        return None if arguments.seed is None else int(arguments.seed)
    first = arguments.seed
    if first is None:
        from testbed.scenario import load

        first = load(arguments.scenario, arguments.overrides).seed
    return int(first) + offset


def _show(arguments: argparse.Namespace, result: RunResult) -> None:
    if arguments.json:
        return
    from testbed.report.tables import show_summary

    show_summary(result.summary)
    for check in result.checks:
        print(f"check {'passed' if check.passed else 'FAILED'}: {check.text} ({check.detail})")
    print(f"files: {result.directory}", file=sys.stderr)
    if (result.directory / "report.html").is_file():
        print(f"report: {result.directory / 'report.html'} (testbed open shows it)", file=sys.stderr)


def _show_repetitions(directories: Sequence[Path]) -> None:
    from testbed.cli import compare

    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    compare.run(parser.parse_args([str(directory) for directory in directories]))
