"""Bytes of a SimAI workload file of Megatron-LM beside those that follow here from the same model and layout.

Compared are the rows of attention and feed-forward layers, and those of gradients and parameters. SimAI counts
parameters by a formula of its own: sums of activations should be equal to the byte, gradients and parameters within
2 %. What else a file has (norms of gradients, the loss, flags of the optimizer) has no counterpart here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from math import inf
from pathlib import Path
from typing import Final

from benchmarks.common import Line, parser_of, report, say
from testbed.errors import EXIT_BAD_INPUT
from topologies.limits import read_text
from workloads.imported.errors import WorkloadFileError
from workloads.training.gpus import GPUS
from workloads.training.layout import ParallelLayout
from workloads.training.plan import GRADIENT_BYTES, SHARDINGS, TrainingPlan
from workloads.training.shape_files import read_config, shapes
from workloads.training.traffic import exchanges

TITLE: Final = "Bytes of an iteration: SimAI's file and this project"
MOST_BYTES: Final = 1 << 26
COLLECTIVES: Final = {"ALLREDUCE": "allreduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter"}
MOST_ERROR: Final = {"activations": 0.0, "gradients": 0.02, "parameters": 0.02}
"""What travels -> how far the two may be apart."""


def lines(file: Path, plan: TrainingPlan) -> list[Line]:
    """A row for each kind of collective that both may have: bytes that a rank hands in, there and here."""
    theirs, ours = of_file(file), Counter[tuple[str, str]]()
    for each in exchanges(plan, 0):
        if each.what in MOST_ERROR:
            ours[each.what, each.collective] += round(each.total)
    return [_line(key, theirs[key], ours[key]) for key in sorted({*theirs, *ours})]


def of_file(file: Path) -> Counter[tuple[str, str]]:
    """(what travels, collective) -> bytes of an iteration."""
    found = Counter[tuple[str, str]]()
    for row in read_text(file, MOST_BYTES).splitlines()[2:]:
        cells = row.split()
        if len(cells) < 12:
            continue
        for collective, size in ((cells[3], cells[4]), (cells[6], cells[7]), (cells[9], cells[10])):
            if collective in COLLECTIVES and (what := _what(cells[0], collective)):
                found[what, COLLECTIVES[collective]] += int(size)
    return found


def _what(row: str, collective: str) -> str:
    """What a collective of a row of this name moves; nothing for what is not compared."""
    if row.startswith("grad"):
        return "parameters" if collective == "ALLGATHER" else "gradients"
    return "activations" if row.startswith(("attention", "mlp")) else ""


def _line(key: tuple[str, str], theirs: int, ours: int) -> Line:
    what, collective = key
    most, ratio = MOST_ERROR[what], ours / theirs if theirs else inf
    columns = {
        "what": what,
        "collective": collective,
        "SimAI": f"{theirs:,}",
        "here": f"{ours:,}",
        "ratio": f"{ratio:.6f}",
    }
    target = f"within {100 * most:g} %" if most else "equal"
    return Line(columns, target, "pass" if abs(ratio - 1) <= most else "missed")


def main() -> int:
    """Compare and print; 0 if all groups agree."""
    asked = _parser().parse_args()
    try:
        return report(TITLE, lines(asked.file, _plan(asked)), as_json=asked.json)
    except (ValueError, WorkloadFileError) as error:
        say(str(error))
        return EXIT_BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(TITLE)
    parser.add_argument("file", type=Path, help="a workload of SimAI (.txt)")
    parser.add_argument("--model", required=True, help="a large model, or the config.json of a release")
    parser.add_argument("--gpus", type=int, required=True)
    for name, value in (("tensor", 1), ("pipeline", 1), ("expert", 1), ("sequence", 2048)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("microbatches", "microbatch"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--sharding", choices=SHARDINGS, default="zero-1")
    parser.add_argument("--gradients", choices=tuple(GRADIENT_BYTES), default="fp32")
    return parser


def _plan(asked: argparse.Namespace) -> TrainingPlan:
    shape = shapes()[asked.model] if asked.model in shapes() else read_config(Path(asked.model))
    layout = ParallelLayout(asked.gpus, asked.tensor, asked.pipeline, expert=asked.expert)
    more = {"sharding": asked.sharding, "gradients": asked.gradients}
    return TrainingPlan(shape, GPUS["a100"], layout, asked.sequence, asked.microbatches, asked.microbatch, **more)


if __name__ == "__main__":
    raise SystemExit(main())
