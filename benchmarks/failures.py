"""Parts that fail at random moments, with packets and as the flow engine computes it: do they cost the same?

Each kind of failure in turn, at moments drawn from ``--seed``, on a Clos fabric and on one whose NICs have two ports.
A run must end, leave nothing behind, and have the outages that the flow engine has; targets: the verdict is ``ok``, and
each job's completion time is within 3 % of the flow engine's.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.common import Line, Scenario, file_of, patiently, run_cases, say
from benchmarks.leftovers import left_by, traces
from testbed.api import RunResult, run_scenario
from testbed.errors import TestbedError

TITLE: Final = "Failures at random moments, packets beside the flow engine"
CASES: Final = 60
NEAR: Final = 0.03
ONE_PORT: Final[Mapping[str, Any]] = {
    **{"kind": "clos", "hosts": 4, "gpus_per_host": 4, "nics_per_host": 2, "tors": 2, "aggregations": 2},
    **{"port_rate": "200Gbps", "fabric_rate": "200Gbps", "parallel_links": 2},
}
TWO_PORTS: Final[Mapping[str, Any]] = {
    **{"kind": "hpn", "hosts": 4, "gpus_per_host": 2, "nics_per_host": 2, "segments": 2, "aggregations": 4},
    **{"port_rate": "100Gbps", "fabric_rate": "200Gbps", "planes": 2},
}
RATES: Final = 5000
Failure = dict[str, Any]


def _moments(draw: random.Random) -> dict[str, str]:
    begin = draw.uniform(1.5, 6.0)
    return {"at": f"{begin:.3f}s", "until": f"{begin + draw.uniform(0.5, 4.0):.3f}s"}


def _cable(draw: random.Random) -> Failure:
    return {"link": f"tor{draw.randrange(2)}->agg{draw.randrange(2)}.{draw.randrange(2)}", **_moments(draw)}


def _port(draw: random.Random) -> Failure:
    nic = f"h{draw.randrange(4)}n{draw.randrange(2)}"
    return {"link": f"{nic}p0->{_tor_of(nic)}", **_moments(draw)}


def _tor_of(nic: str) -> str:
    return f"tor{int(nic[1]) // 2}"


def _nic(draw: random.Random) -> Failure:
    return {"nic": f"h{draw.randrange(4)}n{draw.randrange(2)}", **_moments(draw)}


def _tor(draw: random.Random) -> Failure:
    return {"switch": f"tor{draw.randrange(2)}", **_moments(draw)}


def _aggregation(draw: random.Random) -> Failure:
    return {"switch": f"agg{draw.randrange(2)}", **_moments(draw)}


def _host(draw: random.Random) -> Failure:
    return {"host": f"h{draw.randrange(4)}", **_moments(draw)}


def _flapping(draw: random.Random) -> Failure:
    return {**_nic(draw), "flaps": {"down": f"{draw.uniform(0.2, 0.6):.2f}s", "up": f"{draw.uniform(0.5, 1.0):.2f}s"}}


def _slow(draw: random.Random) -> Failure:
    return {**_port(draw), "rate": round(draw.uniform(0.2, 0.8), 2)}


def _lossy(draw: random.Random) -> Failure:
    return {**_port(draw), "loss": round(draw.uniform(0.001, 0.02), 4)}


def _other_port(draw: random.Random) -> Failure:
    """A port of a NIC that has two."""
    host, rail, side = draw.randrange(4), draw.randrange(2), draw.randrange(2)
    return {"link": f"h{host}n{rail}p{side}->tor{2 * (2 * (host // 2) + rail) + side}", **_moments(draw)}


def _first_tor(draw: random.Random) -> Failure:
    """A ToR whose NICs have another one."""
    return {"switch": f"tor{draw.randrange(8)}", **_moments(draw)}


KINDS: Final[Mapping[str, tuple[Mapping[str, Any], Callable[[random.Random], Failure]]]] = {
    "cable": (ONE_PORT, _cable),
    "port": (ONE_PORT, _port),
    "NIC": (ONE_PORT, _nic),
    "ToR": (ONE_PORT, _tor),
    "aggregation": (ONE_PORT, _aggregation),
    "host": (ONE_PORT, _host),
    "flapping NIC": (ONE_PORT, _flapping),
    "slow cable": (ONE_PORT, _slow),
    "lossy cable": (ONE_PORT, _lossy),
    "one of two ports": (TWO_PORTS, _other_port),
    "one of two ToRs": (TWO_PORTS, _first_tor),
}


def scenario_of(seed: int, case: int) -> tuple[str, Scenario]:
    """The kind of failure of a case, and its scenario."""
    kind = list(KINDS)[case % len(KINDS)]
    fabric, make = KINDS[kind]
    draw = random.Random(f"{seed} {case}")
    jobs = [
        {"name": name, "model": "crux-bert", "placement": hosts, "iterations": 40}
        for name, hosts in (("a", ["h0", "h2"]), ("b", ["h1", "h3"]))
    ]
    return kind, {
        "name": f"failures-{seed}-{case}",
        "fabric": dict(fabric),
        "jobs": jobs,
        "schedulers": ["crux"],
        "failures": [make(draw)],
        "recovery": {
            "timeout": f"{draw.choice((1.0, 20.0))}s",
            "checkpoint_every": draw.choice((1, 4)),
            "restart": "0.5s",
        },
        "measure": {"iterations": 14, "warmup": 1, "time_limit": "60s"},
        "scale": {"bandwidth": RATES, "time": 1},
        "seed": seed,
    }


def measure(seed: int, cases: Sequence[int]) -> list[Line]:
    """A row for each case."""
    return [_row(seed, case) for case in cases]


def _row(seed: int, case: int) -> Line:
    kind, scenario = scenario_of(seed, case)
    what: dict[str, object] = {"case": case, "kind": kind}
    target = f"ok, JCT within {NEAR:.0%}"
    with file_of(scenario) as path:
        say(f"case {case}: {kind} {scenario['failures']}")
        before = traces()
        try:
            flow = run_scenario(path, engine="flow", out=path.parent / "flow", index=False)
            packets = patiently(lambda: run_scenario(path, out=path.parent / "packets", index=False))
        except TestbedError as error:
            return Line({**what, "verdict": "failed"}, target, "missed", note=str(error)[:200])
        left = left_by(os.getpid(), before)
    (run,) = packets.summary["runs"]
    apart, same = _compared(flow, packets)
    columns = {
        **what,
        "verdict": run["fidelity"]["verdict"],
        "outages": sum(job["outages"]["count"] for job in run["jobs"]),
        "restarts": sum(job["outages"]["restarts"] for job in run["jobs"]),
        "JCT %": " ".join(f"{100 * each:+.1f}" for each in apart),
    }
    good = run["fidelity"]["verdict"] == "ok" and same and not left and all(abs(each) <= NEAR for each in apart)
    notes = [*run["fidelity"]["reasons"], *([] if same else ["other outages than in the flow engine"]), *left]
    return Line(columns, target, "pass" if good else "missed", note="; ".join(notes)[:300])


def _compared(flow: RunResult, packets: RunResult) -> tuple[list[float], bool]:
    """By how much each job's completion time differs, and whether outages, restarts and repeats are the same."""
    pairs = list(zip(flow.summary["runs"][0]["jobs"], packets.summary["runs"][0]["jobs"], strict=True))
    apart = [after["jct_s"] / before["jct_s"] - 1 for before, after in pairs]
    keys = ("count", "restarts")
    return apart, all(before["outages"][key] == after["outages"][key] for before, after in pairs for key in keys)


def main() -> int:
    """Run the benchmark; see the module."""
    return run_cases(TITLE, CASES, measure)


if __name__ == "__main__":
    raise SystemExit(main())
