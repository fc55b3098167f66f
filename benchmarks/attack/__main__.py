"""Mutated scenarios, sweeps, traces, checks, run directories and requests: refused in one line each, or a finding.

    python -m benchmarks.attack [--quick] [--only KIND] [--cases N] [--first N] [--seed N]

A case is drawn from the seed, its kind and its number, so that each can be repeated:
``--only KIND --first N --cases 1``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.attack import inputs, odd_fabrics, outputs
from benchmarks.attack.arena import ENDINGS, CaseResult, Ending, fight
from benchmarks.common import Line, parser_of, report, say

TITLE: Final = "attacks: refused in one line, or unclean, hanging over 20 s, over 2 GiB"
SEED: Final = 1
QUICK_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of case, how many there are, and what has to be made before the first."""

    attack: inputs.Attack
    cases: int
    prepare: Callable[[Path], None] = lambda folder: None


KINDS: Final = {
    "scenario": Kind(inputs.scenario, 8000),
    "plan": Kind(inputs.plan, 1200),
    "flow": Kind(inputs.flow, 400),
    "fabric-file": Kind(odd_fabrics.fabric_file, 2500),
    "fabric-plugin": Kind(odd_fabrics.fabric_plugin, 2500),
    "sweep": Kind(inputs.sweep, 1200),
    "trace": Kind(inputs.trace, 3600),
    "check": Kind(inputs.check, 5000),
    "run-directory": Kind(outputs.run_directory, 400, outputs.prepare_run),
    "request": Kind(outputs.request, 1200, outputs.prepare_requests),
    "command-line": Kind(inputs.command_line, 60),
}


def attack(name: str, numbers: range, seed: int, tell: Callable[[str], None] = say) -> Line:
    """Make the cases ``numbers`` of the kind ``name``; each that is not clean is told as it is found."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        kind.prepare(Path(folder))

        def case(number: int, own: Path) -> tuple[Ending, str]:
            return kind.attack(number, Random(f"{seed}:{name}:{number}"), own)

        results = []
        for result in fight(case, numbers, Path(folder), len(os.sched_getaffinity(0))):
            results.append(result)
            if result.ending not in ("accepted", "refused"):
                tell(f"{name} {result.number} (seed {seed}): {result.ending} {result.detail}")
    return line_of(name, results)


def line_of(name: str, results: list[CaseResult]) -> Line:
    """The line of a table for the ``results`` of one kind."""
    found = Counter(result.ending for result in results)
    columns: dict[str, object] = {"kind": name, "cases": len(results)}
    columns |= {ending: found[ending] for ending in ENDINGS}
    columns["slowest s"] = round(max((result.seconds for result in results), default=0.0), 1)
    clean = not any(found[ending] for ending in ("unclean", "hang", "memory"))
    return Line(columns, "0 unclean, 0 hangs, 0 over 2 GiB", "pass" if clean else "missed")


def main() -> int:
    """Attack, show the counts, and return the exit status."""
    given = _parser().parse_args()
    names = [name for name in KINDS if given.only in (None, name)]
    lines = []
    for name in names:
        say(name)
        count = given.cases or KINDS[name].cases
        few = max(10, int(count * QUICK_SHARE)) if given.quick else count
        lines.append(attack(name, range(given.first, given.first + few), given.seed))
    return report(f"{TITLE} (seed {given.seed})", lines, as_json=given.json)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(TITLE, prog="python -m benchmarks.attack")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the cases, to see that it works")
    parser.add_argument("--only", choices=tuple(KINDS), help="only this kind")
    parser.add_argument("--cases", type=int, metavar="N", help="how many of each kind")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first (0)")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"of all draws ({SEED})")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
