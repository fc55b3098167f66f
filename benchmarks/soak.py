"""Many runs in a row in one process: each ends ``ok`` or names what disturbed it, and nothing grows.

After each run what this process and the machine hold is counted; after the last one it must not be more than after the
fifth, by when everything is loaded. Needs root; 50 runs take a quarter of an hour.
"""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.common import Line, parser_of, patiently, report, say
from benchmarks.leftovers import descriptors, left_by, traces
from testbed.api import RunResult, run_scenario
from testbed.errors import RunFailedError

TITLE: Final = "soak: many runs in a row, and what grows"
RUNS: Final = 50
SETTLED: Final = 5
"""The run after which everything is loaded that runs load."""
GRAIN_MIB: Final = 2.0
"""By so much the resident memory of a Python process goes up and down by itself."""


@dataclass(frozen=True)
class Held:
    """What this process holds (descriptors, resident memory in MiB) and the machine (namespaces, mounts)."""

    descriptors: int
    memory_mib: float
    namespaces: int
    mounts: int


def held() -> Held:
    """Count now, once what nobody refers to any more has been given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return Held(descriptors(), _resident_mib(), _namespaces(), len(Path("/proc/self/mounts").read_text().splitlines()))


def _resident_mib() -> float:
    words = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(words.split()[1]) / 1024


def _namespaces() -> int:
    """Network, mount and PID namespaces that processes of the machine are in."""
    found = set()
    for entry in Path("/proc").iterdir():
        for kind in ("net", "mnt", "pid") if entry.name.isdigit() else ():
            try:
                found.add(os.readlink(entry / "ns" / kind))
            except OSError:
                continue
    return len(found)


@dataclass(frozen=True)
class Turn:
    """What came of a run: its verdict with the reasons, whether that will do, what it left, what is held after it."""

    verdict: str
    fine: bool
    left: tuple[str, ...]
    held: Held


def run_once(scenario: str) -> tuple[str, bool]:
    """The verdicts of a run, and whether each is ``ok`` or names neighbours on the machine."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            result: RunResult = patiently(lambda: run_scenario(scenario, out=folder))
        except RunFailedError as error:
            return f"failed: {error}", False
        found = [run["fidelity"] for run in result.summary["runs"]]
    told = "; ".join(", ".join([str(each["verdict"]), *each["reasons"]]) for each in found)
    return told, all(believable(each) for each in found)


def believable(fidelity: Mapping[str, object]) -> bool:
    """Whether a verdict is ``ok``, or the machine's doing by what it says itself."""
    return fidelity["verdict"] == "ok" or bool(fidelity["machine_caused"])


def measure(scenario: str, runs: int) -> list[Line]:
    """Run ``scenario`` so many times; a line for what came of it, and one for everything that is held."""
    turns: list[Turn] = []
    for number in range(1, runs + 1):
        before = traces()
        verdict, fine = run_once(scenario)
        turns.append(Turn(verdict, fine, tuple(left_by(os.getpid(), before)), held()))
        now = turns[-1].held
        say(
            f"{number}/{runs} {verdict}; {now.descriptors} descriptors, {now.memory_mib:.1f} MiB, "
            f"{now.namespaces} namespaces, {now.mounts} mounts"
        )
    return lines_of(turns)


def lines_of(turns: Sequence[Turn]) -> list[Line]:
    """How many runs ended well, what is left, and each thing held after the last beside after the settled run."""
    fine, left = sum(turn.fine for turn in turns), [what for turn in turns for what in turn.left]
    doubts = "; ".join(turn.verdict for turn in turns if not turn.fine)
    found = [
        Line(
            {"what": "ok, or interference named", "found": f"{fine} of {len(turns)}"},
            "all",
            "pass" if fine == len(turns) else "missed",
            doubts,
        ),
        Line({"what": "left behind", "found": len(left)}, "nothing", "missed" if left else "pass", "; ".join(left)),
    ]
    first, last = turns[min(SETTLED, len(turns)) - 1].held, turns[-1].held
    grains = {"memory_mib": GRAIN_MIB}
    for name, was in vars(first).items():
        now = getattr(last, name)
        grown = now - was > grains.get(name, 0)
        columns = {"what": name.replace("_mib", ", MiB"), "found": now, "after run 5": was}
        found.append(Line(columns, "no more", "missed" if grown else "pass"))
    return found


def main() -> int:
    """Parse the command line, run, show the table."""
    parser = parser_of(TITLE)
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"how many runs (default: {RUNS})")
    parser.add_argument("--scenario", default="hello", help="which one (default: hello)")
    given = parser.parse_args()
    lines = measure(given.scenario, max(1, given.runs))
    return report(TITLE, lines, as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
