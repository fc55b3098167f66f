"""Sabotage: somebody disturbs a run from outside, and its verdict has to name what was done.

Each trial starts a run of two small jobs, waits until it measures, does one thing to it for a limited
time, and looks for a finding of the right kind in the summary; on each datapath that this machine has. Needs root, as a
run does. A trial takes about 20 s; ``--trials 20`` of all kinds most of an hour for a datapath. Trials are kept as
lines of JSON as they come, and a second call makes those that are missing. ``undisturbed`` leaves such a run alone,
``undisturbed-NAME`` a bundled scenario as it is: what their verdicts name are false alarms, or what the machine did by
itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.common import Line, append_row, available_datapaths, bundled, parser_of, report, rows_of, say
from benchmarks.leftovers import named_processes
from benchmarks.sabotage_kinds import KINDS, Kind, NotPossibleError, Target
from testbed.api import prepare
from testbed.experiment.experiment import Experiment
from testbed.machine.manifest import git_commit
from topologies.datapath import DATAPATHS, Datapath

TITLE: Final = "sabotage: is what was done to a run named in its verdict?"
SETTLE_S: Final = 3.0
"""From the end of the set-up to the sabotage: warm-up is over, some iterations are measured."""
START_LIMIT_S: Final = 60.0
RUN_LIMIT_S: Final = 600.0
LOCK_POLL_S: Final = 2.0
ROWS: Final = Path("runs/sabotage.jsonl")

UNDISTURBED: Final[Mapping[str, str | None]] = {
    "undisturbed": None,
    "undisturbed-hello": "hello",
    "undisturbed-clos96": "clos96",
}
"""What is left alone: a bundled scenario, or (None) the one that is disturbed otherwise."""


@dataclass(frozen=True)
class Trial:
    """What came of one: whether it was named, the verdict, and all findings in words."""

    named: bool
    verdict: str
    findings: tuple[str, ...]


def small(limit: str = "60s", iterations: int = 22) -> Mapping[str, Any]:
    """The scenario that is disturbed: the two jobs of ``hello``, for longer; with what is lost until ``limit``."""
    measure = {"iterations": iterations, "warmup": 1, "time_limit": limit}
    return {**bundled("hello"), "name": "sabotage", "measure": measure}


def trial(kind: Kind | None, *options: str, document: Mapping[str, Any]) -> Trial:
    """Run the scenario ``document`` once and disturb it by ``kind`` (None: leave it alone).

    Raises:
        NotPossibleError: That cannot be done to a run on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="sabotage-") as name:
        folder = Path(name)
        scenario = folder / "sabotage.yaml"
        scenario.write_text(yaml.safe_dump(dict(document)), "utf-8")
        experiment = prepare(str(scenario)).experiments[0]
        command = [sys.executable, "-m", "testbed", "run", str(scenario), "--scheduler", "crux", "--json", *options]
        run = _start([*command, "--out", str(folder / "runs")], folder)
        try:
            if kind is not None:
                time.sleep(SETTLE_S)
                kind.act(target_of(run.pid, experiment))
            said, _ = run.communicate(timeout=RUN_LIMIT_S)
        finally:
            run.kill()
            run.wait()
        if run.returncode not in (0, 4):
            return Trial(False, f"failed with status {run.returncode}: {_last_line(folder / 'errors')}", ())
        return _trial(json.loads(said)["runs"][0]["fidelity"], kind)


def _trial(fidelity: Mapping[str, Any], kind: Kind | None) -> Trial:
    findings = fidelity["findings"]
    named = kind is not None and any(f["kind"] == kind.finding and kind.words in f["what"] for f in findings)
    told = tuple(f"{f['kind']} {f['from_s']:.1f}-{f['to_s']:.1f} s: {f['what']}" for f in findings)
    return Trial(named, str(fidelity["verdict"]), told)


def _start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a run, again and again while another one has the machine, and wait until its cluster is set up."""
    deadline = time.monotonic() + 10 * START_LIMIT_S
    while True:
        with (folder / "errors").open("w") as errors:
            run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        began = time.monotonic()
        while run.poll() is None and time.monotonic() - began < START_LIMIT_S:
            if any("timings:" in log.read_text(errors="replace") for log in folder.glob("runs/*/*/testbed.log")):
                return run
            time.sleep(0.05)
        run.kill()
        run.wait()
        said = _last_line(folder / "errors")
        if "another emulation" not in said or time.monotonic() > deadline:
            raise RuntimeError(f"the run did not start: {said}")
        time.sleep(LOCK_POLL_S)


def _last_line(errors: Path) -> str:
    said = errors.read_text(errors="replace").strip()
    return said.splitlines()[-1] if said else "it said nothing"


def target_of(run: int, experiment: Experiment) -> Target:
    """The processes of the run that is process ``run``; those of other runs carry another mark.

    ``RuntimeError`` if it has none any more.
    """
    processes = named_processes(run)
    if missing := [name for name in ("the first process", "ovs-vswitchd", "a worker") if name not in processes]:
        raise RuntimeError(f"the run ended before it could be disturbed: {', '.join(missing)} not found")
    return Target(
        processes["the first process"][0],
        processes["ovs-vswitchd"][0],
        processes["a worker"],
        experiment.fabric,
        experiment.scale,
        experiment.datapath,
    )


def measure(
    names: Sequence[str], trials: int, rows: Path | None = None, datapaths: Sequence[Datapath] = ("userspace",)
) -> list[Line]:
    """``trials`` of each of the kinds ``names``, of :data:`KINDS` or :data:`UNDISTURBED`, on each of ``datapaths``.

    ``rows`` keeps them. A kind that disturbs nothing on a datapath has no line there.
    """
    wanted = [(name, datapath) for datapath in datapaths for name in names]
    return [_line(n, d, trials, rows) for n, d in wanted if n in UNDISTURBED or d in KINDS[n].datapaths]


def kept_trials(path: Path, name: str, datapath: Datapath) -> list[Trial]:
    """The trials of a kind in ``path``."""
    rows = [row for row in rows_of(path) if (row["sabotage"], row.get("datapath", "userspace")) == (name, datapath)]
    return [Trial(row["named"], row["verdict"], tuple(row["findings"])) for row in rows]


def _keep(path: Path, name: str, datapath: Datapath, made: Trial) -> None:
    commit = git_commit(Path(__file__).parent)
    append_row(path, {"sabotage": name, "datapath": datapath, "commit": commit, **asdict(made)})


def _line(name: str, datapath: Datapath, trials: int, rows: Path | None) -> Line:
    kind, scenario = KINDS.get(name), UNDISTURBED.get(name)
    document = {**(small() if scenario is None else bundled(scenario)), "datapath": datapath}
    done = [] if rows is None else kept_trials(rows, name, datapath)[:trials]
    for number in range(len(done), trials):
        try:
            done.append(trial(kind, document=document))
        except NotPossibleError as error:
            columns = {"datapath": datapath, "sabotage": name, "trials": 0}
            return Line(columns, outcome="inconclusive", note=str(error))
        if rows is not None:
            _keep(rows, name, datapath, done[-1])
        say(
            f"{datapath} {name} {number + 1}/{trials}: {'named' if done[-1].named else 'not named'}, "
            f"{done[-1].verdict}; {'; '.join(done[-1].findings)}"
        )
    return _counted(name, datapath, done)


def _counted(name: str, datapath: Datapath, done: Sequence[Trial]) -> Line:
    kind, trials = KINDS.get(name), len(done)
    verdicts = [each.verdict for each in done]
    counted = ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
    columns: dict[str, object] = {"datapath": datapath, "sabotage": name, "trials": trials}
    if kind is None:
        note = "; ".join(finding for each in done for finding in each.findings)
        return Line({**columns, "named": "", "verdicts": counted}, note=note)
    named = sum(each.named for each in done)
    columns |= {"named": f"{named} of {trials}", "verdicts": counted}
    return Line(columns, f"{trials} of {trials}", "pass" if named == trials else "missed", kind.summary)


def main() -> int:
    """Parse the command line, make the trials, show the table."""
    parser = parser_of(TITLE)
    parser.add_argument("--trials", type=int, default=20, metavar="N", help="trials of each kind (default: 20)")
    parser.add_argument("--kind", action="append", choices=[*KINDS, *UNDISTURBED], help="only this one (repeatable)")
    parser.add_argument(
        "--datapath", action="append", choices=DATAPATHS, help="only on this one (repeatable; default: all there are)"
    )
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help=f"where trials are kept ({ROWS})")
    parser.add_argument("--fresh", action="store_true", help="make every trial again")
    given = parser.parse_args()
    if given.fresh:
        given.rows.unlink(missing_ok=True)
    lines = measure(
        given.kind or [*KINDS, "undisturbed"], given.trials, given.rows, given.datapath or available_datapaths()
    )
    return report(TITLE, lines, as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
