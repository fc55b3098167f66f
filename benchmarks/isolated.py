"""A job alone against its analytic iteration: compute + exposed bytes at the rate of its most loaded link.

Target: the mean iteration within 1.5 %, for allreduce and all-to-all, on Clos and double-sided.
The analysis takes the paths of the decision in force, so that flows of the job itself that meet on
a link count on both sides. The whole matrix, with the fill of the pipeline in the analysis, is
``benchmarks.validation``.

The scale is what ``auto`` makes of each case. What the fill of a ring and the uneven ends of an
all-to-all add is a few packets' time whatever the size, so messages need packets enough, and
``auto`` sees to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.common import Line, Run, Scenario, doubts_of, judged, main, percent, run

TITLE: Final = "A job alone: measured iteration against compute + exposed bytes / rate"
TOLERANCE: Final = 0.015
PORT_RATE: Final = 100e9
COMPUTE_S: Final = 0.3
REPEATS: Final = 3
SCHEDULER: Final = {"name": "fixed", "paths": "least-loaded", "levels": {"alone": 0}}

FABRICS: Final[Mapping[str, Mapping[str, Any]]] = {
    "clos": {
        "kind": "clos",
        "hosts": 4,
        "gpus_per_host": 4,
        "nics_per_host": 2,
        "tors": 4,
        "aggregations": 4,
        "port_rate": "100Gbps",
        "fabric_rate": "100Gbps",
    },
    "double-sided": {
        "kind": "double-sided",
        "hosts": 4,
        "gpus_per_host": 2,
        "nics_per_host": 1,
        "ports_per_nic": 2,
        "tors": 4,
        "aggregations": 4,
        "cores": 1,
        "port_rate": "100Gbps",
        "fabric_rate": "100Gbps",
    },
}
HOSTS: Final = 4
PORTS: Final = 2
GPUS: Final = {"clos": 4, "double-sided": 2}
NICS: Final = {"clos": 2, "double-sided": 1}


@dataclass(frozen=True, slots=True)
class Case:
    """A collective on a fabric that keeps its host ports busy for ``communication_s`` when alone."""

    fabric: str
    collective: str
    communication_s: float
    overlap: float

    @property
    def size(self) -> float:
        """S of the collective in bytes, from what each of a host's two ports must send."""
        sent = PORTS * self.communication_s * PORT_RATE / 8
        if self.collective == "alltoall":
            return sent * HOSTS / (HOSTS - 1) / GPUS[self.fabric]
        if self.collective == "point-to-point":
            return sent / GPUS[self.fabric]
        if self.collective == "ring":  # leaves a host by one NIC, with the bytes of all ranks
            ranks = HOSTS * NICS[self.fabric]
            return sent / NICS[self.fabric] * ranks / (2 * (ranks - 1))
        return sent * HOSTS / (2 * (HOSTS - 1))

    def scenario(self, iterations: int) -> Scenario:
        """The job on all GPUs of the fabric, nothing else."""
        job = {
            "name": "alone",
            "model": "bert",
            "placement": [f"h{host}" for host in range(HOSTS)],
            "collective": self.collective,
            "compute": f"{COMPUTE_S}s",
            "communication": f"{self.size:.0f}B",
            "overlap": self.overlap,
        }
        return {
            "name": f"isolated-{self.fabric}-{self.collective}",
            "fabric": dict(FABRICS[self.fabric]),
            "channels": 1,
            "jobs": [job],
            "measure": {"iterations": iterations, "warmup": 2, "time_limit": "120s"},
            "scale": "auto",
        }


CASES: Final = tuple(
    Case(fabric, collective, communication_s, overlap)
    for fabric in FABRICS
    for collective in ("hierarchical", "alltoall")
    for communication_s, overlap in ((0.5, 0.0), (1.0, 0.5))
)


def measure(quick: bool) -> list[Line]:
    """Run every case three times; ``quick`` takes each collective on each fabric once, with few iterations."""
    cases: Sequence[Case] = [case for case in CASES if case.overlap == 0.0] if quick else CASES
    repeats, iterations = (1, 4) if quick else (REPEATS, 6)
    return [_line(case, [run(case.scenario(iterations), SCHEDULER) for _ in range(repeats)]) for case in cases]


def _error(made: Run) -> float:
    entry = made.job("alone")
    return float(entry["iteration_s"]["mean"] / entry["alone_s"]["decided_paths"] - 1)


def _line(case: Case, runs: Sequence[Run]) -> Line:
    """The run in the middle, and how far the others are from it."""
    ordered = sorted(runs, key=_error)
    made = ordered[len(ordered) // 2]
    entry, error = made.job("alone"), _error(made)
    measured, analytic = entry["iteration_s"]["mean"], entry["alone_s"]["decided_paths"]
    columns = {
        "fabric": case.fabric,
        "collective": case.collective,
        "overlap": case.overlap,
        "analytic s": round(analytic, 4),
        "measured s": round(measured, 4),
        "p99 s": round(entry["iteration_s"]["p99"], 4),
        "error, median": percent(error),
        "runs": f"{percent(_error(ordered[0]))} to {percent(_error(ordered[-1]))}",
    }
    return Line(columns, "within 1.5 %", judged(abs(error) <= TOLERANCE, *runs), doubts_of(*runs))


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
