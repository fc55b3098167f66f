"""The emulation against analysis: iterations alone, two jobs under strict priority, time dilation.

* A job alone, over collectives, fabrics, scales and overlaps: the mean iteration against compute +
  exposed bytes at payload rate + the fill of the pipeline. Target 1 %.
* Two jobs at different levels against their exact schedule (:mod:`benchmarks.contention`). Target: 2 %
  of the window, for sending and idle time of either; a schedule on an edge may fall on either side of it.
* Utilisation at dilation 1, 2 and 4 (:mod:`benchmarks.dilation`). Target 1 point.

Cases have names such as ``alone/clos/ring/auto/0.5``; ``--only`` takes a part of one. Rows are kept as
lines of JSON as they come; a second call goes on where the first ended, and makes again what was
inconclusive.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks import contention, dilation, isolated
from benchmarks.common import (
    Line,
    Run,
    append_row,
    doubts_of,
    judged,
    mean,
    parser_of,
    percent,
    rows_of,
    run,
    say,
    show,
    status_of,
)
from benchmarks.contention import Contest, Times
from testbed.api import prepare
from testbed.errors import TestbedError
from testbed.experiment.demand import BIN_S, peak_demand
from testbed.experiment.scale import pipeline_fill
from testbed.machine.manifest import git_commit
from testbed.metrics.job_metrics import decision_for
from workloads.analysis import isolated as analytic

TITLE: Final = "The emulation against analysis"
TOLERANCE: Final = 0.01
COLLECTIVES: Final = ("hierarchical", "ring", "alltoall", "point-to-point")
OVERLAPS: Final = (0.0, 0.5, 1.0)
COMMUNICATION_S: Final = 1.0
SCALES: Final[Mapping[str, tuple[float, float]]] = {"auto": (1, 1), "slower": (2, 2), "dilated": (1, 2)}
"""Bandwidth scale and dilation as multiples of what ``auto`` is estimated to be: as fine at half the load, or finer."""
ITERATIONS: Final = 6
QUICK_ITERATIONS: Final = 4
ROWS: Final = Path("runs/validation.jsonl")


@dataclass(frozen=True, slots=True)
class Options:
    """How often a run is made until it is believable, and how many iterations it measures."""

    attempts: int
    iterations: int


Maker = Callable[[Options], Line]


def cases() -> Iterator[tuple[str, bool, Maker]]:
    """Every case: name, whether it belongs to the quick subset, and what makes it."""
    for fabric in isolated.FABRICS:
        for collective in COLLECTIVES:
            for scale in SCALES:
                for overlap in OVERLAPS:
                    case = isolated.Case(fabric, collective, COMMUNICATION_S, overlap)
                    quick = scale == "auto" and overlap == 0.0
                    yield f"alone/{fabric}/{collective}/{scale}/{overlap:g}", quick, partial(_alone, case, scale)
    for contest in contention.CONTESTS:
        yield f"two-jobs/{contest.name}", contest.name.startswith("example"), partial(_contest, contest)
    for what in dilation.SCHEDULERS:
        yield f"dilation/{what.replace(' ', '-')}", what == "two levels", partial(_dilation, what)


def _alone(case: isolated.Case, scale: str, options: Options) -> Line:
    scenario = case.scenario(options.iterations)
    scenario["scale"] = _scaled(scenario, *SCALES[scale])
    made = run(scenario, isolated.SCHEDULER, attempts=options.attempts)
    (job,), fabric = made.experiment.jobs, made.experiment.fabric
    paths = decision_for(made.record, job).paths
    fill_s = pipeline_fill(job, fabric, made.experiment.scale, paths)
    expected = analytic(job, fabric, paths, fill_s).iteration_s
    times = made.job("alone")["iteration_s"]
    if times["mean"] is None:
        return Line({"scale": _scale_words(made)}, "", "inconclusive", f"no iteration was measured; {doubts_of(made)}")
    error = times["mean"] / expected - 1
    columns = {
        "scale": _scale_words(made),
        "load": f"{_packet_hops_per_s(made):,.0f}/s",
        "analysis s": round(expected, 4),
        "of it fill": percent(fill_s / expected),
        "measured s": round(times["mean"], 4),
        "p99 s": round(times["p99"], 4),
        "error": percent(error),
    }
    return Line(columns, f"within {TOLERANCE:.0%}", judged(abs(error) <= TOLERANCE, made), doubts_of(made))


def _contest(contest: Contest, options: Options) -> Line:
    made = run(contest.scenario(), contest.scheduler(), attempts=options.attempts)
    found = contest.measured(made)
    sides = {worst_error(contest, exact, found): exact for exact in (contest.nearby(), contest.exact())}
    worst, exact = min(sides.items())
    names = [player.name for player in contest.players]
    columns: dict[str, object] = {"scale": _scale_words(made)}
    for name, expected, times in zip(names, exact, found, strict=True):
        columns[f"{name}: sends, idle"] = f"{_seconds(times)} (exact {_seconds(expected)})"
    columns["worst error"] = f"{worst:.2%} of {contest.window_s:g} s"
    holds = worst <= contention.TOLERANCE
    return Line(columns, f"within {contention.TOLERANCE:.0%} of the window", judged(holds, made), doubts_of(made))


def worst_error(contest: Contest, exact: tuple[Times, Times], found: tuple[Times, Times]) -> float:
    """The largest difference of a sending or idle time, as a share of the window."""
    return max(
        abs(after - before) / contest.window_s
        for expected, times in zip(exact, found, strict=True)
        for before, after in ((expected.sending_s, times.sending_s), (expected.idle_s, times.idle_s))
    )


def _dilation(what: str, options: Options) -> Line:
    return dilation.line(what, attempts=options.attempts)


def _seconds(times: Times) -> str:
    return f"{times.sending_s:.2f}, {times.idle_s:.2f}"


def _scaled(scenario: Mapping[str, Any], bandwidth: float, time: float) -> dict[str, float]:
    """The scale that ``auto`` is estimated to be for ``scenario``, multiplied."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder, "scenario.yaml")
        path.write_text(yaml.safe_dump({**scenario, "schedulers": [isolated.SCHEDULER]}), "utf-8")
        auto = prepare(str(path)).experiments[0].scale
    return {"bandwidth": auto.bandwidth * bandwidth, "time": auto.time * time, "mtu": auto.mtu}


def _packet_hops_per_s(made: Run) -> float:
    """Packets x switches per second while all ports of the jobs send."""
    experiment, scale = made.experiment, made.experiment.scale
    bits = peak_demand(experiment.fabric, experiment.jobs).forwarded[0] / BIN_S
    return bits / scale.bandwidth / scale.packet_bits


def _scale_words(made: Run) -> str:
    scale = made.experiment.scale
    return f"/{scale.bandwidth:g} x{scale.time:g} MTU {scale.mtu}"


def kept_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Case -> its last row in ``path``."""
    return {row["case"]: row for row in rows_of(path)}


def line_of(row: Mapping[str, Any]) -> Line:
    """The line that was kept as ``row``."""
    return Line(row["columns"], row["target"], row["outcome"], row["note"])


def _make(name: str, make: Maker, options: Options, path: Path) -> dict[str, Any]:
    """Make a case and keep its row; what fails counts as inconclusive."""
    say(name)
    try:
        line = make(options)
    except (TestbedError, ValueError) as error:
        line = Line({}, outcome="inconclusive", note=str(error))
    row = {"case": name, "commit": git_commit(Path(__file__).parent), **asdict(line), "columns": dict(line.columns)}
    append_row(path, row)
    return row


def main() -> int:
    """Make the cases that are asked for and not yet there; show all of them."""
    given = _parser().parse_args()
    chosen = [case for case in cases() if given.only in case[0] and (case[1] or not given.quick)]
    options = Options(given.attempts, QUICK_ITERATIONS if given.quick else ITERATIONS)
    rows = {} if given.fresh else kept_rows(given.rows)
    for name, _, make in chosen:
        if name not in rows or rows[name]["outcome"] == "inconclusive":
            rows[name] = _make(name, make, options, given.rows)
    lines = {name: line_of(rows[name]) for name, _, _ in chosen}
    if given.json:
        named = [replace(line, columns={"case": name, **line.columns}) for name, line in lines.items()]
        show(TITLE, named, as_json=True)
    else:
        for kind in dict.fromkeys(name.partition("/")[0] for name in lines):
            part = {name: line for name, line in lines.items() if name.startswith(f"{kind}/")}
            named = [replace(line, columns={"case": name, **line.columns}) for name, line in part.items()]
            show(f"{TITLE}: {kind}", named, as_json=False)
            _show_summary(list(part.values()))
    return status_of(list(lines.values()))


def _show_summary(lines: Sequence[Line]) -> None:
    errors = [abs(float(str(line.columns["error"]).split()[0])) for line in lines if "error" in line.columns]
    if errors:
        print(f"mean error {mean(errors):.2f} %, largest {max(errors):.2f} %, {len(errors)} cases")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(TITLE)
    parser.add_argument("--quick", action="store_true", help="a case of each kind, with fewer iterations")
    parser.add_argument("--only", default="", metavar="PART", help="only cases whose name contains PART")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help=f"where rows are kept ({ROWS})")
    parser.add_argument("--fresh", action="store_true", help="make every case again")
    parser.add_argument("--attempts", type=int, default=3, metavar="N", help="runs until a verdict is ok (3)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
