"""A real program beside its synthetic twin: mpi4py's allreduce against a job with the same compute and bytes.

Both cross the same paths: alone, and beside another job at a higher and at a lower level. The two agree as far as the
model of the workers is right: a window of packets, a ring, pauses. Target: the mean iteration within 5 %.

It needs Open MPI and mpi4py for the system's Python (Debian: ``openmpi-bin``, ``python3-mpi4py``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Final

from benchmarks.common import TWO_TORS, Line, Run, Scenario, doubts_of, judged, main, percent, run
from testbed.errors import CannotRunError

TITLE: Final = "mpi4py's allreduce against a synthetic job with the same compute and bytes"
TOLERANCE: Final = 0.05
PYTHON: Final = "/usr/bin/python3"
"""Where Debian installs mpi4py; every user may run it."""
COMPUTE_S: Final = 0.4
BYTES: Final = 5e9
SCALE: Final = {"bandwidth": 4000, "time": 1}
EAGER: Final = "--mca btl_tcp_eager_limit 8388608 --mca btl_tcp_max_send_size 8388608 --"
"""Chunks leave at once, as those of RDMA and of workers do. Otherwise Open MPI asks first whether it may send one, and
question and answer wait behind the packets of higher levels."""


@dataclass(frozen=True, slots=True)
class Case:
    """``level`` of the job under test, None alone; the other is at level 1. ``asking``: chunks that are asked for."""

    name: str
    level: int | None
    asking: bool = False


CASES: Final = (
    Case("alone", None),
    Case("level above another", 0),
    Case("level below another", 2),
    Case("level below another, asking first", 2, asking=True),
)


def scenario(case: Case, kind: str, iterations: int) -> Scenario:
    """The job under test, ``real`` or ``synthetic``, across the ToRs; another beside it on the same links."""
    placement = {"placement": ["h0", "h2"], "compute": f"{COMPUTE_S}s", "communication": f"{BYTES:.0f}B"}
    options = "" if case.asking else EAGER
    program = f"{PYTHON} -m testbed.client.mpirun {options} {PYTHON} -m testbed.client.examples.allreduce_mpi"
    jobs: list[dict[str, Any]] = []
    if kind == "real":
        command = f"{program} {{bytes}} {COMPUTE_S}"
        jobs.append({"name": "tested", "kind": "external", "command": command, "flops": "3TFLOP", **placement})
    else:
        more = {"collective": "ring", "overlap": 0.0}
        jobs.append({"name": "tested", "model": "bert", **more, **placement})
    if case.level is not None:
        job = {"name": "other", "model": "bert", "placement": ["h1", "h3"], "collective": "ring", "overlap": 0.0}
        jobs.append({**job, "compute": "0.15s", "communication": "3GB"})
    measure = {"iterations": iterations, "warmup": 5, "time_limit": "180s"}
    return {
        "name": f"external-{kind}",
        "fabric": dict(TWO_TORS),
        "channels": 1,
        "jobs": jobs,
        "measure": measure,
        "scale": SCALE,
    }


def measure(quick: bool) -> list[Line]:
    """Run every case with the real program and with its twin."""
    _require_mpi()
    iterations = 5 if quick else 12
    cases = CASES[:1] if quick else CASES
    return [_line(case, [_run(case, kind, iterations) for kind in ("real", "synthetic")]) for case in cases]


def _run(case: Case, kind: str, iterations: int) -> Run:
    levels = {"tested": 0} if case.level is None else {"tested": case.level, "other": 1}
    return run(scenario(case, kind, iterations), {"name": "fixed", "levels": levels})


def _line(case: Case, runs: Sequence[Run]) -> Line:
    real, synthetic = (_mean_s(made) for made in runs)
    error = real / synthetic - 1
    columns = {
        "case": case.name,
        "real s": round(real, 4),
        "synthetic s": round(synthetic, 4),
        "difference": percent(error),
        "least idle CPU": round(min(made.record.fidelity.min_idle_cpu for made in runs), 2),
    }
    if case.asking:
        return Line(columns, note=doubts_of(*runs))
    return Line(columns, "within 5 %", judged(abs(error) <= TOLERANCE, *runs), doubts_of(*runs))


def _mean_s(made: Run) -> float:
    """The mean iteration; not a number where the machine disturbed every one of them."""
    found = made.job("tested")["iteration_s"]["mean"]
    return nan if found is None else float(found)


def _require_mpi() -> None:
    try:
        subprocess.run([PYTHON, "-c", "import mpi4py"], check=True, capture_output=True)
        subprocess.run(["mpirun", "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotRunError("no Open MPI or mpi4py here: apt-get install openmpi-bin python3-mpi4py") from error


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
