"""Strict priority, measured on jobs and on single flows.

* A prioritised job under contention iterates within 3 % of its time alone (allreduce and all-to-all,
  against a job of another collective on the same links; alone is measured too).
* Of two flows at different levels on one link the higher gets at least 97 % of what it gets alone,
  at three link rates and for every adjacent pair of levels.
* Two flows at one level get the same within 5 %, as means over five seeds, at every level.

What a flow gets is its bytes over the time from its first byte allowed to its last byte received. A
flow here has a partner the other way, as in an all-to-all of two hosts, so that nobody runs ahead of
its receiver: two such jobs meet on the link from the ToR to one host, and on the way back in that
host's own NIC. The pairs of levels run side by side, each on hosts and links of its own, beside a
job alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.common import Line, Run, Scenario, doubts_of, judged, main, mean, percent, run

TITLE: Final = "Strict priority"
LEVELS: Final = 8
PORT_RATE: Final = 100e9
RATES: Final = (6.25e6, 12.5e6, 25e6)
SEEDS: Final = (1, 2, 3, 4, 5)
LEAST_SHARE: Final = 0.97
JOB_TOLERANCE: Final = 0.03
FAIRNESS: Final = 0.05

ALONE: Final = LEVELS - 1
"""Of eight slots the seven adjacent pairs take one each; in the eighth the higher flow is alone."""

_FLOWS: Final = {
    "kind": "clos",
    "hosts": 8,
    "gpus_per_host": 8,
    "nics_per_host": 4,
    "tors": 1,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}


# Two flows on one link


def _flow(name: str, sender: int, sender_nic: int, receiver_gpu: str, pause_s: float, alone_s: float) -> dict[str, Any]:
    """A job that is a flow each way: ``pause_s`` of compute, then messages that take ``alone_s`` alone."""
    return {
        "name": name,
        "model": "bert",
        "placement": [f"h{sender}g{2 * sender_nic}", receiver_gpu],
        "collective": "alltoall",
        "compute": f"{pause_s}s",
        "communication": f"{2 * alone_s * PORT_RATE / 8:.0f}B",
        "overlap": 0,
    }


def _slot(slot: int, first: tuple[float, float], second: tuple[float, float] | None) -> Iterator[dict[str, Any]]:
    """Jobs ``a<slot>`` and ``b<slot>``, (pause, message) each, that meet at one NIC."""
    host, side = slot // 2, slot % 2
    receiver = host + 4
    yield _flow(f"a{slot}", host, 2 * side, f"h{receiver}g{2 * side}", *first)
    if second is not None:
        yield _flow(f"b{slot}", host, 2 * side + 1, f"h{receiver}g{2 * side + 1}", *second)


def _pairs_scenario(name: str, rate: float, jobs: Sequence[dict[str, Any]], iterations: int) -> Scenario:
    return {
        "name": name,
        "fabric": dict(_FLOWS),
        "channels": 1,
        "jobs": list(jobs),
        "measure": {"iterations": iterations, "warmup": 1, "time_limit": "60s"},
        "scale": {"bandwidth": PORT_RATE / rate, "time": 1},
        "levels": LEVELS,
    }


def _rate(made: Run, job: str, alone_s: float) -> float:
    """Share of the link's rate that the flows of ``job`` got while both their senders had something to send."""
    return alone_s / mean(made.joint_communication_s(job))


def adjacent_levels(rate: float, iterations: int) -> list[Line]:
    """Every adjacent pair of levels at one link rate: the higher sends in bursts, the lower whenever it can."""
    burst, filler = (0.4, 0.8), (0.001, 0.2)
    jobs = [job for slot in range(LEVELS) for job in _slot(slot, burst, None if slot == ALONE else filler)]
    levels = {f"{job}{slot}": slot + (job == "b") for slot in range(LEVELS - 1) for job in "ab"} | {f"a{ALONE}": 0}
    made = run(
        _pairs_scenario(f"levels-{rate / 1e6:g}Mbps", rate, jobs, iterations), {"name": "fixed", "levels": levels}
    )
    alone = _rate(made, f"a{ALONE}", burst[1])
    lines = []
    for slot in range(LEVELS - 1):
        share = _rate(made, f"a{slot}", burst[1]) / alone
        columns = {
            "what": f"level {slot} over {slot + 1}",
            "link": f"{rate / 1e6:g} Mbit/s",
            "measured": f"{share:.2%} of alone",
        }
        lines.append(Line(columns, ">= 97 %", judged(share >= LEAST_SHARE, made), doubts_of(made)))
    return lines


def same_level(seeds: Sequence[int], iterations: int) -> list[Line]:
    """Two equal flows at each level, side by side, as means over seeds."""
    message = (0.001, 0.3)
    jobs = [job for slot in range(LEVELS) for job in _slot(slot, message, message)]
    levels = {f"{job}{slot}": slot for slot in range(LEVELS) for job in "ab"}
    scenario = _pairs_scenario("one-level", 12.5e6, jobs, iterations)
    runs = [run(scenario, {"name": "fixed", "levels": levels}, seed=seed) for seed in seeds]
    lines = []
    for slot in range(LEVELS):
        got = [mean([_rate(made, f"{job}{slot}", message[1]) for made in runs]) for job in "ab"]
        apart = abs(got[0] - got[1]) / mean(got)
        columns = {
            "what": f"two at level {slot}, {len(runs)} seeds",
            "link": "12.5 Mbit/s",
            "measured": f"{got[0]:.1%} and {got[1]:.1%}, {percent(apart)} apart",
        }
        lines.append(Line(columns, "within 5 %", judged(apart <= FAIRNESS, *runs), doubts_of(*runs)))
    return lines


# A prioritised job under contention


def _job(name: str, hosts: Sequence[int], collective: str, compute_s: float, communication_s: float) -> dict[str, Any]:
    """A job on whole two-GPU hosts whose NICs send for ``communication_s`` alone."""
    count, sent = len(hosts), communication_s * PORT_RATE / 8
    size = sent * count / (count - 1) / 2
    return {
        "name": name,
        "model": "bert",
        "placement": [f"h{host}" for host in hosts],
        "collective": collective,
        "compute": f"{compute_s}s",
        "communication": f"{size:.0f}B",
        "overlap": 0,
    }


def prioritised_job(collective: str, iterations: int) -> Line:
    """A job at level 0 on four hosts, one below each ToR, beside a job at level 1 on the four others."""
    fabric = {
        "kind": "clos",
        "hosts": 8,
        "gpus_per_host": 2,
        "nics_per_host": 1,
        "tors": 4,
        "aggregations": 1,
        "port_rate": "100Gbps",
        "fabric_rate": "100Gbps",
    }
    other = "alltoall" if collective == "hierarchical" else "hierarchical"
    high, low = _job("high", (0, 2, 4, 6), collective, 0.4, 0.6), _job("low", (1, 3, 5, 7), other, 0.05, 0.45)
    if collective == "hierarchical":
        high["communication"] = _half(high["communication"])
    else:
        low["communication"] = _half(low["communication"])
    scenario = {
        "name": f"prioritised-{collective}",
        "fabric": fabric,
        "channels": 1,
        "measure": {"iterations": iterations, "warmup": 2, "time_limit": "60s"},
        "scale": {"bandwidth": PORT_RATE / 12.5e6, "time": 1},
        "levels": LEVELS,
    }
    scheduler = {"name": "fixed", "levels": {"high": 0, "low": 1}}
    alone = run({**scenario, "jobs": [high]}, scheduler)
    beside = run({**scenario, "jobs": [high, low]}, scheduler)
    times = [made.job("high")["iteration_s"]["mean"] for made in (alone, beside)]
    slower = times[1] / times[0] - 1
    low_times = beside.job("low")
    columns = {
        "what": f"job of {collective} beside one of {other}",
        "link": "12.5 Mbit/s",
        "measured": f"{times[1]:.3f} s beside, {times[0]:.3f} s alone: {percent(slower)}; the other takes "
        f"{low_times['iteration_s']['mean']:.2f} s instead of {low_times['alone_s']['decided_paths']:.2f} s",
    }
    outcome = judged(slower <= JOB_TOLERANCE, alone, beside)
    return Line(columns, "within 3 %", outcome, doubts_of(alone, beside))


def _half(size: str) -> str:
    """An allreduce sends its bytes twice round."""
    return f"{int(size[:-1]) // 2 * 2}B"


def measure(quick: bool) -> list[Line]:
    """All of it; ``quick`` takes one link rate, two seeds and one collective."""
    jobs = [prioritised_job(collective, 5 if quick else 12) for collective in _collectives(quick)]
    rates, seeds = (RATES[1:2], SEEDS[:2]) if quick else (RATES, SEEDS)
    pairs = [line for rate in rates for line in adjacent_levels(rate, 5 if quick else 8)]
    return [*jobs, *pairs, *same_level(seeds, 5 if quick else 10)]


def _collectives(quick: bool) -> tuple[str, ...]:
    return ("hierarchical",) if quick else ("hierarchical", "alltoall")


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
