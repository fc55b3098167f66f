"""What all benchmarks share: running a scenario until its verdict is ok, and showing numbers beside their targets."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import yaml
from rich.console import Console
from rich.table import Table

from testbed.api import run_scenario
from testbed.errors import EXIT_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK, CannotRunError, RunFailedError, TestbedError
from testbed.experiment.experiment import Experiment
from testbed.machine.capabilities import datapaths_here
from testbed.machine.datapaths import choose
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from topologies.datapath import DATAPATHS, Datapath

Made = TypeVar("Made")
Scenario = dict[str, Any]
Outcome = Literal["pass", "missed", "inconclusive", ""]

TWO_TORS: Final[Mapping[str, Any]] = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 1,
    "nics_per_host": 1,
    "tors": 2,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
"""A fabric of one path: what crosses the ToRs shares a link."""
ATTEMPTS: Final = 3
"""How often a run is made until its verdict is ok."""
LOCK_WAIT_S: Final = 600.0
"""How long another emulation on the machine is waited for."""
_LOCK_POLL_S: Final = 2.0


@dataclass(frozen=True)
class Run:
    """One scheduler's run of a scenario: what was asked, what was recorded, the summary's entry and the log."""

    experiment: Experiment
    record: RunRecord
    summary: Mapping[str, Any]
    log: str

    @property
    def believable(self) -> bool:
        """Whether the verdict is ok."""
        return self.record.fidelity.verdict == "ok"

    @property
    def doubts(self) -> str:
        """The verdict's reasons in a few words; empty if it is ok."""
        return "" if self.believable else f"{self.record.fidelity.verdict}: {'; '.join(self.record.fidelity.reasons)}"

    def job(self, name: str) -> Mapping[str, Any]:
        """The summary's entry of job ``name``."""
        entry: Mapping[str, Any] = next(job for job in self.summary["jobs"] if job["name"] == name)
        return entry

    def communication_s(self, job: str) -> list[float]:
        """Seconds of communication of each undisturbed iteration of ``job`` after warm-up, mean over its GPUs."""
        by_iteration: dict[int, list[float]] = {}
        for row in self.record.iterations:
            if row.job == job and row.iteration >= self.experiment.measure.warmup and not row.disturbed:
                by_iteration.setdefault(row.iteration, []).append(row.communication_s)
        return [mean(times) for times in by_iteration.values()]

    def joint_communication_s(self, job: str) -> list[float]:
        """As :meth:`communication_s`, from when all hosts are ready to the last byte; for jobs without overlap."""
        ready: dict[int, float] = {}
        end: dict[int, float] = {}
        for row in self.record.iterations:
            if row.job == job and row.iteration >= self.experiment.measure.warmup and not row.disturbed:
                begin = row.start_s + row.compute_s
                ready[row.iteration] = max(ready.get(row.iteration, begin), begin)
                end[row.iteration] = max(end.get(row.iteration, 0.0), begin + row.communication_s)
        return [end[iteration] - ready[iteration] for iteration in ready]


@dataclass(frozen=True)
class Line:
    """A row of a benchmark's table: columns in order, the target in words, and whether it is met."""

    columns: Mapping[str, object]
    target: str = ""
    outcome: Outcome = ""
    note: str = field(default="")


def bundled(name: str) -> Scenario:
    """The bundled scenario ``name`` as a document that may be changed."""
    document: Scenario = yaml.safe_load((files("testbed") / "scenarios" / f"{name}.yaml").read_text("utf-8"))
    return {"name": name, **document, "checks": []}


def run(
    scenario: Mapping[str, Any], scheduler: str | Mapping[str, Any], *, seed: int = 1, attempts: int = ATTEMPTS
) -> Run:
    """Run ``scenario`` under ``scheduler``, up to ``attempts`` times until its verdict is ok; the last run otherwise.

    A run that fails because of what happened on the machine counts as an attempt. Raises what the
    testbed raises when the last attempt fails too.
    """
    document = {**scenario, "schedulers": [scheduler], "seed": seed}
    for attempt in range(1, attempts + 1):
        last = attempt == attempts
        try:
            made = _run_once(document)
        except RunFailedError as error:
            if last:
                raise
            say(f"{document['name']}: {error}; trying again")
            continue
        if made.believable or last:
            return made
        say(f"{document['name']}: {made.doubts}; trying again")
    raise AssertionError("unreachable")


def _run_once(document: Scenario) -> Run:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder, "scenario.yaml")
        path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        say(f"{document['name']}: running")
        result = patiently(lambda: run_scenario(str(path), out=Path(folder)))
        directory = RunDirectory.open(result.directory)
        scheduler = directory.schedulers()[0]
        return Run(
            experiment=directory.read_experiment(),
            record=directory.read_record(scheduler),
            summary=result.summary["runs"][0],
            log=directory.log_file(scheduler).read_text("utf-8", "replace"),
        )


def default_datapath() -> Datapath:
    """What forwards packets on this machine where nobody asks for anything; for experiments made by hand."""
    return choose(None, datapaths_here(), switches_hash=False).datapath


def available_datapaths() -> list[Datapath]:
    """What this machine has to forward packets, the best first."""
    missing = datapaths_here()
    return [name for name in DATAPATHS if not missing[name]]


def patiently(action: Callable[[], Made]) -> Made:
    """Do ``action``, which needs the machine for itself; wait while another emulation runs on it."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return action()
        except CannotRunError as error:
            if "another emulation" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(_LOCK_POLL_S)


def judged(holds: bool, *runs: Run) -> Outcome:
    """``pass`` or ``missed``, but ``inconclusive`` unless all ``runs`` are believable."""
    if not all(made.believable for made in runs):
        return "inconclusive"
    return "pass" if holds else "missed"


def doubts_of(*runs: Run) -> str:
    """Why an outcome is inconclusive, for the note of a line."""
    return "; ".join(made.doubts for made in runs if made.doubts)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; ``ValueError`` without values."""
    if not values:
        raise ValueError("mean of no values")
    return sum(values) / len(values)


def percent(value: float, digits: int = 2) -> str:
    """``0.0123`` -> ``+1.23 %``."""
    return f"{100 * value:+.{digits}f} %"


def say(text: str) -> None:
    """Tell on standard error what goes on."""
    print(text, file=sys.stderr, flush=True)


def status_of(lines: Sequence[Line]) -> int:
    """Exit status: 1 when a target is missed, else 4 when a line is inconclusive, else 0."""
    outcomes = {line.outcome for line in lines}
    if "missed" in outcomes:
        return EXIT_FAILED
    return EXIT_NOT_BELIEVABLE if "inconclusive" in outcomes else EXIT_OK


def show(title: str, lines: Sequence[Line], *, as_json: bool) -> None:
    """Print ``lines`` on standard output, as one JSON document or as a table."""
    if as_json:
        rows = [{**line.columns, "target": line.target, "outcome": line.outcome, "note": line.note} for line in lines]
        print(json.dumps({"benchmark": title, "rows": rows}, indent=1))
        return
    table = Table(title=title, title_justify="left")
    names = list(dict.fromkeys(name for line in lines for name in line.columns))
    for name in names:
        table.add_column(name)
    for name in ("target", "outcome", "note"):
        if any(getattr(line, name) for line in lines):
            names.append(name)
            table.add_column(name)
    for line in lines:
        cells = {**line.columns, "target": line.target, "outcome": line.outcome, "note": line.note}
        table.add_row(*(_cell(cells.get(name, "")) for name in names))
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def report(title: str, lines: Sequence[Line], *, as_json: bool) -> int:
    """Print ``lines`` as :func:`show` does, and return the exit status."""
    show(title, lines, as_json=as_json)
    return status_of(lines)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def parser_of(title: str, **settings: Any) -> argparse.ArgumentParser:
    """Return the command line that all benchmarks have; ``settings`` are those of ``argparse``."""
    parser = argparse.ArgumentParser(description=title, **settings)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def main(title: str, measure: Callable[[bool], Sequence[Line]]) -> int:
    """Parse the command line, measure, show, and return the exit status."""
    parser = parser_of(title)
    parser.add_argument("--quick", action="store_true", help="fewer cases and iterations, to see that it works")
    given = parser.parse_args()
    try:
        lines = measure(given.quick)
    except TestbedError as error:
        say(str(error))
        return error.exit_status
    return report(title, lines, as_json=given.json)


def append_row(path: Path, row: Mapping[str, object]) -> None:
    """Add ``row`` to a file of lines of JSON; a last line that a kill cut off is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + json.dumps(row) + "\n")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of such a file, in order; a line that was cut off is left out."""
    found: list[dict[str, Any]] = []
    for text in path.read_text("utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(text))
    return found


@contextlib.contextmanager
def file_of(scenario: Scenario) -> Iterator[Path]:
    """A file with ``scenario``, in a folder that goes at the end."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder, "scenario.yaml")
        path.write_text(yaml.safe_dump(scenario, sort_keys=False), "utf-8")
        yield path


def run_cases(title: str, cases: int, measure: Callable[[int, Sequence[int]], list[Line]]) -> int:
    """Run a benchmark whose cases are drawn from a seed, as its command line says; return its status."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--cases", type=int, default=cases, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, action="append", help="only this case (repeatable)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    arguments = parser.parse_args()
    lines = measure(arguments.seed, arguments.only or range(arguments.cases))
    show(title, lines, as_json=arguments.json)
    return status_of(lines)
