"""Bytes per collective group of a SimAI workload file beside those that follow here from the same model and layout.

Sizes are compared as bytes on a rank's wire (nccl-tests' bus bandwidth), since a file may gather and scatter what is
added up here. SimAI counts parameters by a formula of its own: tensor groups should be equal to the byte, gradients are
up to 2 % larger there.
"""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import Final

from benchmarks.common import Line, parser_of, report, say
from testbed.errors import EXIT_BAD_INPUT
from workloads.communication.collectives import ALGORITHMS, collective_named
from workloads.imported import simai
from workloads.imported.errors import WorkloadFileError
from workloads.imported.workload import GroupKind
from workloads.training.gpus import GPUS
from workloads.training.layout import Group, ParallelLayout
from workloads.training.plan import GRADIENT_BYTES, SHARDINGS, TrainingPlan
from workloads.training.shape_files import read_config, shapes
from workloads.training.traffic import exchanges

TITLE: Final = "Bytes per group: SimAI's file and this project"
GROUPS: Final[dict[GroupKind, Group]] = {
    "tensor": "tensor",
    "expert": "expert",
    "data": "gradient",
    "data-expert": "expert-gradient",
}
"""SimAI's name of a group -> that of a training plan."""
GRADIENT_ERROR: Final = 0.02


def lines(file: Path, plan: TrainingPlan) -> list[Line]:
    """A row for each group that sends anything: bytes that a rank sends in an iteration, there and here."""
    workload = simai.read(file, plan.layout.gpus, None)
    theirs: dict[Group, float] = {}
    for each in workload.collectives:
        if each.group in GROUPS:
            sent = _sent(each.kind, each.bytes, workload.parallelism.size(each.group))
            theirs[GROUPS[each.group]] = theirs.get(GROUPS[each.group], 0.0) + sent
    ours: dict[Group, float] = {}
    for exchange in exchanges(plan, 0):
        if exchange.group != "pipeline":
            sent = _sent(exchange.collective, exchange.total, len(plan.layout.groups(exchange.group)[0]))
            ours[exchange.group] = ours.get(exchange.group, 0.0) + sent
    return [_line(group, theirs.get(group, 0.0), ours.get(group, 0.0)) for group in sorted({*theirs, *ours})]


def _sent(collective: str, size: float, ranks: int) -> float:
    return collective_named(ALGORITHMS.get(collective, collective)).bus_factor(ranks) * size


def _line(group: Group, theirs: float, ours: float) -> Line:
    most = GRADIENT_ERROR if group in ("gradient", "expert-gradient") else 0.0
    ratio = ours / theirs if theirs else inf
    columns = {"group": group, "SimAI": f"{theirs:,.0f}", "here": f"{ours:,.0f}", "ratio": f"{ratio:.6f}"}
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
    parser.add_argument("--sharding", choices=SHARDINGS, default="none")
    parser.add_argument("--gradients", choices=tuple(GRADIENT_BYTES), default="fp32")
    return parser


def _plan(asked: argparse.Namespace) -> TrainingPlan:
    shape = shapes()[asked.model] if asked.model in shapes() else read_config(Path(asked.model))
    layout = ParallelLayout(asked.gpus, asked.tensor, asked.pipeline, expert=asked.expert)
    more = {"sharding": asked.sharding, "gradients": asked.gradients}
    return TrainingPlan(shape, GPUS["a100"], layout, asked.sequence, asked.microbatches, asked.microbatch, **more)


if __name__ == "__main__":
    raise SystemExit(main())
