"""Time dilation changes nothing: the same two contending jobs at dilation 1, 2 and 4.

Target: GPU utilisations agree within 1 point, of the run and of each job, under ECMP (two flows of one
level share a link) and with levels set by hand. Link rates stay, pauses and messages grow alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.common import ATTEMPTS, Line, Run, Scenario, doubts_of, judged, main, run

TITLE: Final = "Time dilation: GPU utilisation at dilation 1, 2 and 4"
POINTS: Final = 1.0
DILATIONS: Final = (1, 2, 4)
BANDWIDTH: Final = 4000
ITERATIONS: Final = 10

SCHEDULERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "one level": {"name": "fixed"},
    "two levels": {"name": "fixed", "levels": {"one": 0, "two": 1}},
    "own links": {"name": "fixed", "paths": "least-loaded"},
}


def scenario(dilation: float, iterations: int = ITERATIONS) -> Scenario:
    """Two jobs of two hosts each, whose rings and all-to-alls can meet between the ToRs."""
    fabric = {
        "kind": "clos",
        "hosts": 4,
        "gpus_per_host": 1,
        "nics_per_host": 1,
        "tors": 2,
        "aggregations": 2,
        "port_rate": "100Gbps",
        "fabric_rate": "100Gbps",
    }
    one = {
        "name": "one",
        "model": "bert",
        "placement": ["h0", "h2"],
        "compute": "0.8s",
        "communication": "8GB",
        "overlap": 0.5,
        "collective": "hierarchical",
    }
    two = {
        "name": "two",
        "model": "bert",
        "placement": ["h1", "h3"],
        "compute": "0.5s",
        "communication": "10GB",
        "overlap": 0,
        "collective": "alltoall",
    }
    return {
        "name": f"dilation-{dilation:g}",
        "fabric": fabric,
        "channels": 1,
        "jobs": [one, two],
        "measure": {"iterations": iterations, "warmup": 2, "time_limit": "60s"},
        "scale": {"bandwidth": BANDWIDTH, "time": dilation},
    }


def line(what: str, dilations: Sequence[float] = DILATIONS, attempts: int = ATTEMPTS) -> Line:
    """One scheduler at every dilation; what differs most."""
    runs = [run(scenario(dilation), SCHEDULERS[what], attempts=attempts) for dilation in dilations]
    columns: dict[str, object] = {"jobs": what}
    columns |= {f"x {d:g}": _show(made) for d, made in zip(dilations, runs, strict=True)}
    apart = max(_spread([_points(made, name) for made in runs]) for name in ("", "one", "two"))
    columns["apart"] = f"{apart:.2f} points"
    return Line(columns, f"within {POINTS:g} point", judged(apart <= POINTS, *runs), doubts_of(*runs))


def measure(quick: bool) -> list[Line]:
    """Every scheduler; ``quick`` leaves out dilation 4."""
    return [line(what, DILATIONS[:2] if quick else DILATIONS) for what in SCHEDULERS]


def _points(made: Run, job: str) -> float:
    """GPU utilisation in points, of the whole run where ``job`` is empty."""
    return 100 * float(made.job(job)["gpu_utilization"] if job else made.summary["gpu_utilization"])


def _show(made: Run) -> str:
    return f"{_points(made, ''):.2f} ({_points(made, 'one'):.2f}, {_points(made, 'two'):.2f})"


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
