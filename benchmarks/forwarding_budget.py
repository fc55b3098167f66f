"""What each datapath forwards: the largest rate at which the CPU stays idle enough and the verdict is ``ok``.

All 48 NICs of twelve hosts send at once over three switches, with one connection to the next NIC or with four. For each
datapath of this machine and each packet size the rate is found by bisection: carried is what leaves a median of at
least 35 % of the CPU idle in a run that is ``ok``. A run that neighbours of the machine disturbed says nothing and is
rerun. Built-in budgets come from here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.common import Line, available_datapaths, main, patiently, say
from testbed.engines.emulation.forwarding_budget import MTUS, SHAPES, MeasuredFabric, experiment
from testbed.engines.registry import create_engine
from testbed.errors import RunFailedError
from testbed.fidelity.interference import MIN_IDLE_CPU
from testbed.machine.budget import BUILT_IN_BUDGETS
from topologies.datapath import Datapath

TITLE: Final = "packets x switches per second: 48 NICs sending at once over three switches"
TARGET_RATIO: Final = 7.0
TARGET_MTU: Final = 9000
STEP: Final = 1.35
"""Factor between the rates tried until one is carried and the next is not."""
HALVINGS: Final = 3
REPEATS: Final = 3
ATTEMPTS: Final = 3
_OTHERS: Final = frozenset({"neighbours", "stolen"})


@dataclass(frozen=True, slots=True)
class Trial:
    """One run at ``rate`` packets x switches per second, planned: the idle CPU it left, and whether it was carried."""

    rate: float
    idle: float
    carried: bool
    why_not: str


def measure(quick: bool) -> list[Line]:
    """A row per packet size and number of channels: what each datapath carries, and the ratio of the best two."""
    single, several = SHAPES[:2]
    wanted = [(single, mtu) for mtu in MTUS] + [(several, TARGET_MTU)]
    rows, repeats = (wanted[:1], 1) if quick else (wanted, REPEATS)
    return [_row(shape, mtu, available_datapaths(), repeats) for shape, mtu in rows]


def _row(shape: MeasuredFabric, mtu: int, datapaths: Sequence[Datapath], repeats: int) -> Line:
    found = {name: [largest_rate(name, shape, mtu) for _ in range(repeats)] for name in datapaths}
    columns: dict[str, object] = {"MTU": mtu, "channels": shape.channels}
    for name, rates in found.items():
        columns[name] = f"{median(rates):,.0f}"
        columns[f"{name}, each"] = ", ".join(f"{rate:,.0f}" for rate in rates)
    if not {"nftables", "userspace"} <= found.keys():
        return Line(columns)
    ratio = median(found["nftables"]) / median(found["userspace"])
    columns["nftables / userspace"] = f"{ratio:.2f}"
    if mtu != TARGET_MTU or shape.channels != 1:
        return Line(columns)
    return Line(columns, f">= {TARGET_RATIO:g} times", "pass" if ratio >= TARGET_RATIO else "missed")


def largest_rate(datapath: Datapath, shape: MeasuredFabric, mtu: int) -> float:
    """The largest rate that was carried; the next larger one tried, by at most 4 %, was not."""
    rate = BUILT_IN_BUDGETS[datapath].at(mtu, shape.ports, shape.channels)
    carried, refused = 0.0, 0.0
    while not (carried and refused):
        if attempt(datapath, shape, mtu, rate).carried:
            carried, rate = rate, rate * STEP
        else:
            refused, rate = rate, rate / STEP
    for _ in range(HALVINGS):
        middle = (carried * refused) ** 0.5
        if attempt(datapath, shape, mtu, middle).carried:
            carried = middle
        else:
            refused = middle
    return carried


def attempt(datapath: Datapath, shape: MeasuredFabric, mtu: int, rate: float) -> Trial:
    """Try ``rate``, again where neighbours took the CPU; the last trial otherwise."""
    for left in reversed(range(ATTEMPTS)):
        tried, disturbed = _run(datapath, shape, mtu, rate)
        say(
            f"{datapath}, channels {shape.channels}, MTU {mtu}, {rate:,.0f}: "
            f"{'carried' if tried.carried else 'not carried'}, idle {tried.idle:.0%} {tried.why_not}"
        )
        if tried.carried or not disturbed or not left:
            return tried
    raise AssertionError("unreachable")


def _run(datapath: Datapath, shape: MeasuredFabric, mtu: int, rate: float) -> tuple[Trial, bool]:
    """What came of one run, and whether neighbours disturbed it."""
    made = replace(experiment(shape, mtu, rate), datapath=datapath)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        try:
            record = patiently(lambda: create_engine("emulation").run(made, Path(folder), lambda message: None))
        except RunFailedError as error:
            return Trial(rate, 0.0, False, str(error)), False
    seconds: Any = record.environment["cpu"]
    idle = median(float(second[2]) for second in seconds)
    verdict = record.fidelity
    carried = idle >= MIN_IDLE_CPU and verdict.verdict == "ok"
    disturbed = any(finding.kind in _OTHERS for finding in verdict.findings)
    return Trial(rate, idle, carried, "; ".join(verdict.reasons)), disturbed


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
