"""What the machine forwards: idle CPU while all 48 NICs of ``clos96`` send at once, over the link rate.

``scale: auto`` plans with what ``testbed doctor --measure`` found, or with the built-in budget, which comes
from here: this checks either on a whole fabric.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from benchmarks.common import Line, Scenario, bundled, datapath_of, default_datapath, main, run
from testbed.experiment.scale import peak_load
from testbed.fidelity.interference import MIN_IDLE_CPU
from testbed.machine.budget import BUILT_IN_MTU, BUILT_IN_PORTS, PACKET_HOPS_PER_S
from testbed.machine.budget_cache import current_budget

TITLE: Final = "48 NICs sending at once over three switches, MTU 9000"
HOSTS: Final = (0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11)
"""Ring neighbours lie under different ToRs."""
SHARES: Final = (1 / 2, 2 / 3, 1.0, 4 / 3, 2.0)
"""Loads, as shares of the budget of the machine's datapath."""
BANDWIDTH: Final = 32_000.0
"""Scale at which the load is ``PACKET_HOPS_PER_S``."""


def scenario(bandwidth: float) -> Scenario:
    """One job on all GPUs that does nothing but send, each flow on links of its own."""
    made = bundled("clos96")
    made["name"] = f"forwarding-{bandwidth:.0f}"
    made["jobs"] = [
        {
            "name": "all",
            "model": "crux-gpt",
            "placement": [f"h{host}" for host in HOSTS],
            "compute": "0.001s",
            "overlap": 0,
            "communication": "170GB",
            "jitter": 0,
        }
    ]
    made["measure"] = {"iterations": 3, "warmup": 1, "time_limit": "60s"}
    made["scale"] = {"bandwidth": bandwidth, "time": 1}
    made["checks"] = []
    return made


def measure(quick: bool) -> list[Line]:
    """A row per link rate, the fastest last."""
    budget = current_budget(default_datapath()).at(BUILT_IN_MTU, BUILT_IN_PORTS)
    shares = SHARES[2:3] if quick else SHARES
    return [_row(round(BANDWIDTH * PACKET_HOPS_PER_S / budget / share)) for share in shares]


def _row(bandwidth: float) -> Line:
    made = run(scenario(bandwidth), {"name": "crux", "priorities": False}, attempts=1)
    budget = current_budget(datapath_of(made))
    load = peak_load(made.experiment.fabric, made.experiment.jobs, made.experiment.scale, budget)
    idle = sorted(float(second[2]) for second in made.record.environment["cpu"])  # type: ignore[attr-defined]
    job = made.job("all")
    slowest = job["iteration_s"]["p99"] / job["alone_s"]["decided_paths"]
    within = load.share <= 1.01
    return Line(
        {
            "link": f"{200e3 / bandwidth:.2f} Mbit/s",
            "packets x switches per s": f"{load.packet_hops_per_s:,.0f}",
            "idle CPU, median": f"{median(idle):.0%}",
            "lowest second": f"{idle[0]:.0%}",
            "slowest iteration / analytic": f"{slowest:.3f}",
        },
        target=f">= {MIN_IDLE_CPU:.0%} idle within the budget" if within else "",
        outcome=("pass" if median(idle) >= MIN_IDLE_CPU else "missed") if within else "",
    )


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
