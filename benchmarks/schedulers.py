"""Every scheduler on ``clos96``, with packets: what it gains, and whether the packets did what it decided.

A verdict ``ok`` says that rules and paths were as decided and that every sampled packet carried a mark
in force; beside it, how long a step's decision took to reach the senders (target: 99 % in 10 ms) and how far
shifted iterations began from their phase (target 5 ms). ``rates`` limits flows by hand on ``hello``:
bytes over seconds against the rate (target 3 %).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.common import Line, Run, bundled, judged, main, mean, percent, run
from controller.schedulers.registry import names

TITLE: Final = "clos96 under every scheduler"
LEFT_OUT: Final = ("fixed",)
"""Decides what its options say; see ``rates``."""
STEP_S: Final = 0.010
PHASE_S: Final = 0.005
RATE_ERROR: Final = 0.03
RATES: Final = (20, 40, 80)
"""Gbit/s, on links of 100."""


def measure(quick: bool) -> list[Line]:
    """All schedulers on the whole scenario; ``quick`` takes few iterations and three schedulers."""
    scenario = bundled("clos96")
    chosen: Sequence[str] = [name for name in names() if name not in LEFT_OUT]
    if quick:
        scenario["measure"] = {"iterations": 3, "warmup": 1, "time_limit": "60s"}
        chosen = ("crux", "sincronia", "cassini")
    lines = [_scheduler_line(name, run(scenario, name)) for name in chosen]
    return lines + [_rate_line(rate) for rate in (RATES[:1] if quick else RATES)]


def _scheduler_line(name: str, made: Run) -> Line:
    seen = made.record.environment
    parts: list[Mapping[str, Any]] = [seen] if "sampled_packets" in seen else list(_each(seen))
    delays = sorted(delay for part in parts for delay in part["step_delays_s"])
    errors = [abs(error) for part in parts for job in part["phase_errors_s"].values() for error in job]
    columns = {
        "scheduler": name,
        "GPU utilisation": f"{made.summary['gpu_utilization']:.1%}",
        "verdict": made.record.fidelity.verdict,
        "packets sampled": sum(part["sampled_packets"] for part in parts),
        "step p50, p99 ms": f"{_at(delays, 0.5):.1f}, {_at(delays, 0.99):.1f}" if delays else "",
        "phase error ms": f"{1e3 * max(errors):.1f}" if errors else "",
    }
    met = (not delays or _at(delays, 0.99) <= 1e3 * STEP_S) and (not errors or max(errors) <= PHASE_S)
    target = "step p99 10 ms" if delays else "phase 5 ms" if errors else "verdict ok"
    return Line(columns, target, judged(met and made.believable, made), made.doubts)


def _each(environment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The evidence of the single runs of a scheduler that isolates jobs."""
    return [part for part in environment.values() if isinstance(part, Mapping) and "sampled_packets" in part]


def _at(ordered: Sequence[float], share: float) -> float:
    """A quantile in milliseconds."""
    return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _rate_line(rate: int) -> Line:
    """A job alone whose flows are limited to ``rate`` Gbit/s."""
    scenario = bundled("hello")
    scenario["jobs"] = [{**scenario["jobs"][1], "communication": "2GB", "overlap": 0}]
    scenario["measure"] = {"iterations": 8, "warmup": 1, "time_limit": "30s"}
    made = run(scenario, {"name": "fixed", "rates": {scenario["jobs"][0]["name"]: f"{rate}Gbps"}})
    (job,) = made.experiment.jobs
    expected = 8 * max(flow.bytes for flow in job.flows) / (rate * 1e9)
    error = mean(made.joint_communication_s(job.name)) / expected - 1
    columns = {
        "scheduler": f"fixed, {rate} of 100 Gbit/s",
        "verdict": made.record.fidelity.verdict,
        "rate error": percent(-error, 1),
    }
    return Line(columns, "within 3 %", judged(abs(error) <= RATE_ERROR, made), made.doubts)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
