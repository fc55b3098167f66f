"""Faults in the middle of a run: how it ends, how soon, what it says, what the record says, what is left.

Each trial starts a run of two small jobs, waits until it measures, lets one thing happen to it (or two at once), and
waits for its end. A run that does not go on has to end, and one that goes on has to come to its end, within 15 s of the
fault or of the run's time limit; with one clear line, a record that says the truth, and nothing left on the machine.
``--kills N`` kills a process of a run at a random moment instead, N times. Needs root. A trial takes up to half a
minute; they are kept as lines of JSON as they come, and a second call makes those that are missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.common import (
    LOCK_WAIT_S,
    Line,
    Outcome,
    append_row,
    bundled,
    default_datapath,
    parser_of,
    report,
    rows_of,
    say,
)
from benchmarks.fault_kinds import CAPACITY, FAULTS, GROUPS, Fault, Scene
from benchmarks.leftovers import left_by, processes_of, state_of_record, traces
from benchmarks.sabotage import target_of
from testbed.api import prepare
from testbed.experiment.experiment import Experiment

TITLE: Final = "faults: does a run end soon, in one clear line, and leave nothing?"
KILLS: Final = "kills: what is left by runs that were killed at random moments?"
WITHIN_S: Final = 15.0
SETTLE_S: Final = 2.0
LIMIT_S: Final = 9.0
GIVE_UP_S: Final = 90.0
LAST_MOMENT_S: Final = 9.0
ROWS: Final = Path("runs/faults.jsonl")
_PROGRESS: Final = re.compile(r"( \.\.\.|: done in .*|elapsed.*|^(files|report): .*|^connecting .*)$")


@dataclass(frozen=True)
class Trial:
    """What came of one. ``seconds``: from the fault to the end; ``late_s``: from when the end was due, or negative."""

    status: int
    lines: tuple[str, ...]
    seconds: float
    late_s: float
    record: str
    left: tuple[str, ...]


def scenario() -> dict[str, object]:
    """Two small jobs, for some seconds."""
    measure = {"iterations": 12, "warmup": 1, "time_limit": f"{LIMIT_S:g}s"}
    return {**bundled("hello"), "name": "faults", "schedulers": ["crux"], "measure": measure}


def trial(fault: Fault) -> Trial:
    """Run once and let ``fault`` happen."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name, _place(Path(name, "runs"), fault.small_disk) as out:
        folder = Path(name)
        before = traces()
        path, experiment = _written(folder)
        run, measured = _measuring(fault, path, out, folder)
        try:
            time.sleep(SETTLE_S)
            scene = Scene(run, target_of(run.pid, experiment), out)
            at = time.monotonic()
            fault.act(scene)
            ended = _wait(run)
        finally:
            run.kill()
            run.wait()
        due = max(at, measured + LIMIT_S) + WITHIN_S
        lines = _lines(folder / "errors")
        left = tuple(left_by(run.pid, before, out))
        return Trial(run.returncode, lines, round(ended - at, 1), round(ended - due, 1), state_of_record(out), left)


def _written(folder: Path) -> tuple[Path, Experiment]:
    path = folder / "faults.yaml"
    path.write_text(yaml.safe_dump(scenario()), "utf-8")
    return path, prepare(str(path)).experiments[0]


@contextlib.contextmanager
def _place(out: Path, small: bool) -> Iterator[Path]:
    """The folder for run directories; ``small``: a file system of its own, in this process's mount namespace."""
    out.mkdir()
    if small:
        _own_mounts()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={CAPACITY}", "tmpfs", str(out)], check=True)
    try:
        yield out
    finally:
        if small:
            subprocess.run(["umount", "--lazy", str(out)], check=True)


def _own_mounts() -> None:
    """Enter a mount namespace that no other process sees; once more changes nothing."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x00020000) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def _measuring(fault: Fault, path: Path, out: Path, folder: Path) -> tuple[subprocess.Popen[bytes], float]:
    """A run that measures, and since when; waits while another run has the machine."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        run = _started(fault, path, out, folder)
        while run.poll() is None:
            if any("timings:" in log.read_text(errors="replace") for log in out.glob("*/*/testbed.log")):
                return run, time.monotonic()
            time.sleep(0.05)
        said = (folder / "errors").read_text()
        if "another emulation" not in said or time.monotonic() > deadline:
            raise RuntimeError(f"the run did not start: {said.strip().splitlines()[-1:] or 'it said nothing'}")
        time.sleep(2.0)


def _started(fault: Fault, path: Path, out: Path, folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "testbed", "run", str(path), "--out", str(out)]
    if fault.redirect:
        words = ["sh", "-c", f'exec "$@" {fault.redirect}', "sh", *words]
    if fault.pipes:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_as_by_hand)
    with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
        return subprocess.Popen(words, stdout=output, stderr=errors, preexec_fn=_as_by_hand)


def _as_by_hand() -> None:
    """A shell in the background ignores signals for its children, a terminal does not."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _wait(run: subprocess.Popen[bytes]) -> float:
    """When the run ended; it is given up after :data:`GIVE_UP_S`."""
    try:
        run.wait(GIVE_UP_S)
    except subprocess.TimeoutExpired:
        say(f"process {run.pid} did not end within {GIVE_UP_S:.0f} s")
    return time.monotonic()


def _lines(errors: Path) -> tuple[str, ...]:
    """What was said beside progress."""
    text = errors.read_text("utf-8", "replace") if errors.exists() else ""
    return tuple(line for line in text.splitlines() if line and not _PROGRESS.search(line))


def problems(fault: Fault, made: Trial) -> list[str]:
    """What is not as it should be, in words."""
    survived = made.status in (0, 4, 5)
    found = [f"{made.late_s + WITHIN_S:.1f} s after the fault or the limit"] if made.late_s > 0 else []
    complete = made.record not in ("none", "UNFINISHED")
    # Where only what it prints is lost, a complete run may end with another status.
    honest = complete if survived else not complete or fault.pipes or bool(fault.redirect)
    if not honest or made.record.startswith("damaged"):
        found.append(f"status {made.status}, but the record: {made.record}")
    if survived and made.lines:
        found.append(f"it said {made.lines[-1]!r} and went on")
    if not survived and not fault.silent and len(made.lines) != 1:
        found.append(f"{len(made.lines)} lines")
    if fault.says and fault.says not in " ".join([*made.lines[-1:], made.record]):
        found.append(f"'{fault.says}' is not said")
    return found + [f"left: {what}" for what in made.left]


def measure(names: Sequence[str], rows: Path, seconds: float) -> list[Line]:
    """A trial of each of the faults ``names``; ``rows`` keeps them. After ``seconds`` no other is begun."""
    lines, begun = [], time.monotonic()
    for number, name in enumerate(names, start=1):
        kept = [row for row in rows_of(rows) if row["fault"] == name]
        if kept:
            made = _kept(kept[-1])
        elif time.monotonic() - begun > seconds:
            lines.append(Line({"fault": name}, outcome="inconclusive", note="not tried yet"))
            continue
        else:
            made = trial(FAULTS[name])
            append_row(rows, {"fault": name, **asdict(made)})
        lines.append(_line(name, made))
        said = made.lines[-1] if made.lines else ""
        say(f"{number}/{len(names)} {name}: {lines[-1].outcome}, status {made.status}, {made.seconds} s, {said}")
    return lines


def _kept(row: Mapping[str, Any]) -> Trial:
    lines, left = tuple(row["lines"]), tuple(row["left"])
    return Trial(row["status"], lines, row["seconds"], row["late_s"], row["record"], left)


def _line(name: str, made: Trial) -> Line:
    wrong = problems(FAULTS[name], made)
    columns = {
        "fault": name,
        "status": made.status,
        "seconds": made.seconds,
        "last line": made.lines[-1] if made.lines else "",
        "record": made.record,
        "left": len(made.left),
    }
    return Line(columns, f"{WITHIN_S:.0f} s, one line, nothing left", "missed" if wrong else "pass", "; ".join(wrong))


def kills(count: int, seed: int) -> list[Line]:
    """Kill a process of a run at a random moment, ``count`` times; one line that counts."""
    drawn, left, records = random.Random(seed), [], []
    for number in range(1, count + 1):
        what, found, record = _killed(drawn)
        left += found
        records.append(record)
        say(f"{number}/{count} {what}: {record}; left: {', '.join(found) or 'nothing'}")
    counted = ", ".join(f"{record} {records.count(record)}" for record in dict.fromkeys(records))
    columns = {"kills": count, "seed": seed, "left": len(left), "records": counted}
    outcome: Outcome = "missed" if left or "dishonest" in records else "pass"
    return [Line(columns, "nothing left", outcome, "; ".join(left))]


def _killed(drawn: random.Random) -> tuple[str, list[str], str]:
    """What was killed when, what is left, and whether the record says the truth."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder, out = Path(name), Path(name, "runs")
        before = traces()
        path, _ = _written(folder)
        run = _started(Fault(lambda scene: None), path, out, folder)
        moment = drawn.uniform(0.0, LAST_MOMENT_S)
        time.sleep(moment)
        pid = drawn.choice(sorted({run.pid, *processes_of(run.pid)}))
        if run.poll() is None:
            _kill(pid)
        _wait(run)
        run.kill()
        run.wait()
        record = state_of_record(out)
        complete = record not in ("none", "UNFINISHED")
        honest = not record.startswith("damaged") and complete == (run.returncode in (0, 4, 5))
        kind = "complete" if complete else record
        what = f"{'the command' if pid == run.pid else 'a process of it'} killed after {moment:.2f} s"
        return what, left_by(run.pid, before, out), kind if honest else "dishonest"


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main() -> int:
    """Parse the command line, make the trials, show the table."""
    parser = parser_of(TITLE)
    names = [*GROUPS, *FAULTS]
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help="a group, or a fault")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="kill N times at random moments instead")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments of kills (default: 1)")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help=f"where trials are kept ({ROWS})")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="begin no trial after S seconds")
    parser.add_argument("--fresh", action="store_true", help="make every trial again")
    given = parser.parse_args()
    if given.fresh:
        given.rows.unlink(missing_ok=True)
    if given.kills:
        lines = kills(given.kills, given.seed)
    else:
        wanted = [fault for name in given.only or GROUPS for fault in GROUPS.get(name, (name,))]
        say(f"{len(wanted)} faults on {default_datapath()}")
        lines = measure(wanted, given.rows, given.seconds)
    return report(KILLS if given.kills else TITLE, lines, as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
