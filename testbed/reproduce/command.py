"""What ``testbed reproduce`` does: run an experiment of a paper and print the paper's numbers beside ours."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from math import inf
from typing import Any, Final, cast

from testbed.errors import EXIT_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK, BadInputError, TestbedError
from testbed.fluid.numerical_settings import NUMERICAL_SETTINGS
from testbed.machine.compiler_notice import slow_experiments
from testbed.metrics.confidence import chance_beyond_spread
from testbed.metrics.formats import with_spread
from testbed.progress import Progress
from testbed.report.tables import MISSING, new_table, show
from testbed.report.terminal import say
from testbed.reproduce.documents import document, kept, write
from testbed.reproduce.experiments import find, names
from testbed.reproduce.paper_experiment import OUT, PaperColumn, PaperExperiment, PaperRow, Settings
from topologies.input.spelling import expectation
from topologies.limits import CHANNELS

ALL: Final = "all"
FITTED: Final = "*"
"""Marks a number whose inputs were fitted to the paper's."""
SPREADS: Final = (
    "+- and \N{PLUS-MINUS SIGN}: spread, largest minus smallest. "
    "(In parentheses): not larger than its spread, which proves nothing."
)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of one experiment or of all, or the list of experiments."""
    if arguments.name is None:
        _list(arguments.json)
        return EXIT_OK
    try:
        status = _all(arguments) if arguments.name == ALL else _one(arguments)
    except KeyboardInterrupt:
        again = command(arguments) + ("" if arguments.out == OUT else f" --out {shlex.quote(str(arguments.out))}")
        print(f"testbed: interrupted; what is finished is kept, go on with: {again}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK if status == EXIT_NOT_BELIEVABLE and arguments.allow_degraded else status


def _one(arguments: argparse.Namespace) -> int:
    experiment = find(arguments.name)
    settings = _settings(arguments, experiment)
    say_if_slow(experiment)
    rows = _rows(experiment, settings)
    if arguments.json:
        print(json.dumps(document(arguments.name, command(arguments), rows), indent=1))
    else:
        _show(arguments.name, experiment, settings, rows)
    return _status(rows)


def _all(arguments: argparse.Namespace) -> int:
    """Run every experiment in turn; one that fails is reported and does not stop the others."""
    own = (("--cases", arguments.cases), ("--row", arguments.only), ("--trace", arguments.trace))
    of_replays = (("--days", arguments.days), ("--numerics", arguments.numerics), ("--channels", arguments.channels))
    for option, value in (*own, *of_replays):
        if value:
            raise BadInputError(f"{option} belongs to one experiment, not to all")
    documents: list[dict[str, Any]] = []
    say_if_slow(*map(find, names()))
    statuses = [_one_of_all(name, arguments, documents) for name in names()]
    if arguments.json:
        print(json.dumps({"experiments": documents}, indent=1))
    return _worst(statuses)


def say_if_slow(*experiments: PaperExperiment) -> None:
    """Say how much longer computed experiments take without the compiler."""
    if (notice := slow_experiments()) and not all(each.emulates for each in experiments):
        print(notice, file=sys.stderr)


def _one_of_all(name: str, arguments: argparse.Namespace, documents: list[dict[str, Any]]) -> int:
    """Add the document of experiment ``name``; returns its exit status."""
    experiment = find(name)
    own = argparse.Namespace(**{**vars(arguments), "name": name})
    own.seeds = arguments.seeds if experiment.seeds else None
    own.seed = arguments.seed if experiment.draws else 1
    settings = _settings(own, experiment)
    try:
        rows = _kept_or_computed(name, command(own), experiment, settings)
    except TestbedError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_status
    documents.append(write(settings.out, name, command(own), rows))
    if not arguments.json:
        _show(name, experiment, settings, rows)
    return _status(rows)


def _kept_or_computed(name: str, same: str, experiment: PaperExperiment, settings: Settings) -> Sequence[PaperRow]:
    """Computed rows are kept as a whole; emulated experiments keep each run."""
    rows = None if experiment.emulates else kept(settings.out, name, same)
    if rows is None:
        return _rows(experiment, settings)
    print(f"{name}: kept from before", file=sys.stderr)
    return rows


def _rows(experiment: PaperExperiment, settings: Settings) -> Sequence[PaperRow]:
    with Progress(quiet=False) as progress:
        rows = experiment.run(settings, progress)
    return rows


def _settings(arguments: argparse.Namespace, experiment: PaperExperiment) -> Settings:
    for option, value in (("--cases", arguments.cases), ("--jobs", arguments.jobs), ("--seeds", arguments.seeds)):
        if value is not None and value < 1:
            raise BadInputError(f"{option} must be at least 1, not {value}")
    if experiment.emulates and arguments.cases is not None:
        raise BadInputError(f"{arguments.name} has no cases, expected --seeds")
    if not experiment.cases and arguments.cases is not None:
        raise BadInputError(f"{arguments.name} has no cases, expected no --cases")
    if arguments.only and not (experiment.emulates or experiment.rows):
        raise BadInputError(f"{arguments.name} emulates nothing, expected no --row")
    if not experiment.draws and (arguments.seed != 1 or arguments.seeds is not None):
        raise BadInputError(f"{arguments.name} draws nothing by a seed, expected neither --seed nor --seeds")
    if not experiment.seeds and arguments.seeds is not None:
        raise BadInputError(f"{arguments.name} takes one seed, expected --seed and no --seeds")
    if experiment.artifacts and arguments.days is not None:
        raise BadInputError(f"{arguments.name} plays whole traces, expected no --days")
    if not experiment.replays and not experiment.artifacts and (arguments.trace or arguments.days is not None):
        raise BadInputError(f"{arguments.name} replays no trace, expected neither --trace nor --days")
    if arguments.days is not None and not arguments.days > 0:
        raise BadInputError(f"--days must be more than 0, not {arguments.days:g}")
    if arguments.days == inf:
        raise BadInputError("--days must be finite, not inf")
    return Settings(
        trace=arguments.trace,
        days=experiment.days if arguments.days is None else arguments.days,
        numerics=_numerics(arguments, experiment),
        channels=_channels(arguments, experiment),
        cases=experiment.cases if arguments.cases is None else arguments.cases,
        seed=arguments.seed,
        processes=arguments.jobs or len(os.sched_getaffinity(0)),
        seeds=experiment.seeds if arguments.seeds is None else arguments.seeds,
        only=tuple(arguments.only),
        out=arguments.out,
        redo=arguments.redo,
    )


def _numerics(arguments: argparse.Namespace, experiment: PaperExperiment) -> tuple[str, ...]:
    """The numerical settings asked for, the default ones first; empty for all."""
    if arguments.numerics and not (experiment.replays and experiment.seeds):
        raise BadInputError(f"{arguments.name} replays no trace with several settings, expected no --numerics")
    for name in arguments.numerics:
        if name not in NUMERICAL_SETTINGS:
            raise BadInputError(f"unknown numerical settings '{name}', {expectation(name, NUMERICAL_SETTINGS)}")
    return tuple(name for name in NUMERICAL_SETTINGS if name in arguments.numerics)


def _channels(arguments: argparse.Namespace, experiment: PaperExperiment) -> int | None:
    if arguments.channels is not None and not experiment.channels:
        raise BadInputError(f"{arguments.name} takes no channels, expected no --channels")
    if arguments.channels is not None and not 1 <= arguments.channels <= CHANNELS:
        raise BadInputError(f"--channels must be 1 to {CHANNELS}, not {arguments.channels}")
    return cast("int | None", arguments.channels)


def command(arguments: argparse.Namespace) -> str:
    """The command that computes the same rows again."""
    words = ["python -m testbed reproduce", arguments.name]
    words += [] if arguments.cases is None else [f"--cases {arguments.cases}"]
    words += [] if arguments.seed == 1 else [f"--seed {arguments.seed}"]
    words += [] if arguments.seeds is None else [f"--seeds {arguments.seeds}"]
    words += [f"--row {name}" for name in arguments.only]
    words += [] if arguments.trace is None else [f"--trace {shlex.quote(str(arguments.trace))}"]
    words += [] if arguments.channels is None else [f"--channels {arguments.channels}"]
    words += [f"--numerics {name}" for name in arguments.numerics]
    words += [] if arguments.days is None else [f"--days {_shortest(arguments.days)}"]
    return " ".join(words)


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _status(rows: Sequence[PaperRow]) -> int:
    return _worst([row.status for row in rows])


def _worst(statuses: Sequence[int]) -> int:
    """A failure outweighs a verdict that is not ok."""
    return min((status for status in statuses if status), default=EXIT_OK)


def _list(as_json: bool) -> None:
    found = {name: find(name) for name in names()}
    if as_json:
        listed = [{"name": name, "summary": one.summary, "source": one.source} for name, one in found.items()]
        print(json.dumps({"experiments": listed}, indent=1))
        return
    table = new_table("experiments", left=("name",), last="what")
    table.add_column("source", min_width=20)
    for name, one in found.items():
        table.add_row(name, one.summary, one.source)
    show([table])


def _show(name: str, experiment: PaperExperiment, settings: Settings, rows: Sequence[PaperRow]) -> None:
    say([f"{name}: {experiment.summary} ({experiment.source}); {_size(experiment, settings)}"])
    columns = experiment.columns
    table = new_table("", left=("",), right=tuple(column.title for column in columns), splits=_splits(columns))
    for row in rows:
        table.add_row(row.label, *(_cell(column, row) for column in columns))
    show([table])
    if any(column.spread for column in columns):
        say([SPREADS, *_chance(experiment, settings)])
    say(_calibrations(rows))
    for row in rows:
        if row.note:
            say([f"{row.label}: {row.note}"])


def _splits(columns: Sequence[PaperColumn]) -> list[int]:
    """Columns of the table, the label's being the first, before which it may be cut: not what is beside the paper's."""
    beside = ("here", "+-", "worst", "most")
    titles = [column.title for column in columns]
    alone = [place for place, title in enumerate(titles) if place and not title.startswith(beside)]
    return [1 + place for place in alone if not columns[place - 1].paper]


def _chance(experiment: PaperExperiment, settings: Settings) -> list[str]:
    """What a difference of replays larger than its spread is worth, with so many seeds."""
    if not experiment.replays or not experiment.seeds:
        return []
    chance = chance_beyond_spread(settings.seeds)
    if chance is None:
        return ["One seed has no spread: no difference proves anything."]
    share = f"up to {chance:.0%}" if chance >= 0.01 else "less than 1%"
    return [f"With {settings.seeds} seeds pure chance exceeds its spread in {share} of all cases."]


def _calibrations(rows: Sequence[PaperRow]) -> list[str]:
    """What was fitted to what, each text once, after the sign that marks fitted numbers."""
    found = dict.fromkeys(row.calibrated_on for row in rows if row.calibrated_on)
    return [f"{FITTED} fitted: {text}" if any(row.fitted for row in rows) else f"calibrated: {text}" for text in found]


def _size(experiment: PaperExperiment, settings: Settings) -> str:
    """The size of the experiment: hash seeds, generated cases, a replayed trace, or none of these."""
    if experiment.emulates:
        return f"{settings.seeds} hash seeds from {settings.seed}"
    if experiment.replays:
        return _replays(settings) if experiment.seeds else f"seed {settings.seed}"
    return f"{settings.cases} cases, seed {settings.seed}" if experiment.draws else "nothing is drawn"


def _replays(settings: Settings) -> str:
    numerics = " and ".join(settings.numerics or NUMERICAL_SETTINGS)
    return f"{settings.seeds} seeds from {settings.seed}, each with numerical settings {numerics}"


def _cell(column: PaperColumn, row: PaperRow) -> str:
    numbers = column.numbers(row)
    value = numbers.get(column.key)
    if value is None:
        return MISSING
    text = with_spread(value, numbers.get(column.spread), column.form) if column.spread else column.form(value)
    return f"{text}{FITTED}" if column.key in row.fitted and numbers is row.here else text
