"""Waiting times of a serving job's requests beside those of an M/D/1 queue, where nothing contends.

One prefill instance, prompts of one length, a Poisson process: requests wait ``rho / (2 (1 - rho))`` times what a
prefill takes, on average (Pollaczek and Khinchine). Each load is run with several seeds; target: 3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, Final

from benchmarks.common import Line, file_of, main, percent
from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine

TITLE: Final = "Requests beside an M/D/1 queue"
LOADS: Final = (0.3, 0.5, 0.7, 0.8)
SEEDS: Final = 8
REQUESTS: Final = 12_000
MOST_ERROR: Final = 0.03


def scenario_of(rate: float, seed: int) -> dict[str, Any]:
    """A serving job with nothing beside it, at ``rate`` requests per second."""
    return {
        "name": "serving-queue",
        "fabric": {
            "kind": "clos", "hosts": 2, "gpus_per_host": 4, "nics_per_host": 4, "tors": 2, "aggregations": 4,
            "port_rate": "400Gbps", "fabric_rate": "1600Gbps",
        },
        "jobs": [
            {
                "name": "chat", "kind": "serving", "model": "llama3-8b", "prefill": {"tensor": 4},
                "decode": {"tensor": 4}, "placement": ["h0", "h1"],
                "requests": {"rate": rate, "prompt": 4096, "output": 2, "count": REQUESTS},
            }
        ],
        "channels": 1,
        "schedulers": ["ecmp"],
        "measure": {"iterations": REQUESTS, "warmup": 0, "time_limit": "1000000s"},
        "seed": seed,
    }  # fmt: skip


def measure(quick: bool) -> Sequence[Line]:
    """A row for each load."""
    return [_row(rho, 2 if quick else SEEDS) for rho in LOADS]


def _row(rho: float, seeds: int) -> Line:
    prefill_s = _prefill_s()
    waits = [_waiting_s(rho / prefill_s, seed) for seed in range(1, seeds + 1)]
    expected = prefill_s * rho / (2 * (1 - rho))
    error = fmean(waits) / expected - 1
    columns = {
        "load": rho,
        "requests": seeds * REQUESTS,
        "waits ms": round(1000 * fmean(waits), 3),
        "M/D/1 ms": round(1000 * expected, 3),
        "error": percent(error),
        "standard error": percent(stdev(waits) / len(waits) ** 0.5 / expected),
    }
    return Line(columns, "within 3 %", "pass" if abs(error) <= MOST_ERROR else "missed", "")


def _prefill_s() -> float:
    with file_of(scenario_of(1.0, 1)) as path:
        (experiment,) = prepare(path, engine="flow").experiments
    served = experiment.jobs[0].served
    assert served is not None
    return served.prefill_s[0]


def _waiting_s(rate: float, seed: int) -> float:
    """Mean waiting time of all requests of a run."""
    with file_of(scenario_of(rate, seed)) as path:
        (experiment,) = prepare(path, engine="flow").experiments
        record = FlowEngine().run(experiment, path.parent, lambda _message: None)
    return fmean(row.time_to_first_token_s - row.prefill_s for row in record.requests)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
