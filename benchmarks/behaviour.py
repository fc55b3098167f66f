"""Digests of what the testbed computes, to show that a change of the code left its results alone.

``python benchmarks/behaviour.py CHECKOUT [PART ...]`` prints a SHA-256 per result of the code in CHECKOUT, which may be
any version: run it on two checkouts and compare the lines. Parts:

* ``decisions``: 5,000 random arrivals, departures, and links that fail and come back, on three fabrics under eight
  schedulers;
* ``flow``: every bundled scenario with the flow engine: rows, decisions, timelines and summaries;
* ``replays``: two days of a synthetic trace under six schedulers on two fabrics, and under every cluster manager;
* ``fig16``: 300 generated cases of figure 16.

Keys that were renamed since schema 1 are mapped back by :data:`RENAMED_KEYS`, version numbers and measured CPU times
are left out; values are compared as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

RENAMED_KEYS: Final[Mapping[str, str]] = {
    "jct_source": "jct_is",
    "migrations": "moves",
    "min_gpus": "least_gpus",
    "max_gpus": "most_gpus",
    "share_gpus_with": "packed_with",
    "placement_policy": "place",
    "pcie_queues": "inside",
    "job_failures": "fates",
    "time_limit": "limit",
    "time_limit_s": "limit_s",
    "early_stop_at": "end_at",
}
"""Key of today -> key of schema 1."""
LEFT_OUT: Final = frozenset(
    {"schema_version", "environment", "cpu_s", "peak_bytes", "confirmed_s", "command", "version", "elapsed_s"}
)
EVENTS: Final = 5000
SCHEDULERS: Final = ("crux", "crux-pa", "crux-ps-pa", "taccl-star", "hedera", "cassini", "sincronia", "ecmp")
TOO_SLOW: Final = ("cassini", "double-sided")
"""Its unified circles of so many shared links take longer than all the rest."""
MODELS: Final = ("gpt", "bert", "resnet", "nmt", "crux-gpt", "crux-bert", "crux-resnet", "ctr")
LARGEST_JOB: Final = 32


def canonical(value: Any) -> Any:
    """``value`` as JSON-ready data with sorted, mapped-back keys."""
    if is_dataclass(value) and not isinstance(value, type):
        return canonical({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        kept = (
            (RENAMED_KEYS.get(str(key), str(key)), canonical(item))
            for key, item in value.items()
            if str(key) not in LEFT_OUT
        )
        return dict(sorted(kept))
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    return value


def digest(values: Iterator[Any] | list[Any]) -> str:
    """SHA-256 of the JSON form of ``values``, one after the other."""
    found = hashlib.sha256()
    for value in values:
        found.update(json.dumps(canonical(value), sort_keys=True).encode())
    return found.hexdigest()


def decisions() -> Iterator[tuple[str, str]]:
    """Scheduler and fabric -> digest of all decisions over random events."""
    fabrics = _fabrics()
    pairs = [(name, label) for name in SCHEDULERS for label in fabrics if (name, label) != TOO_SLOW]
    for name, label in pairs:
        yield f"decisions {name} {label}", digest(list(_decide(name, fabrics[label], EVENTS // len(pairs) + 1)))


def _fabrics() -> dict[str, Any]:
    from topologies.clos import clos
    from topologies.double_sided import double_sided

    wide: dict[str, Any] = {"gpus_per_host": 8, "nics_per_host": 4, "port_rate": 100e9, "fabric_rate": 100e9}
    return {
        "clos": clos(hosts=24, tors=6, aggregations=4, **wide),
        "clos-2to1": clos(hosts=16, tors=8, aggregations=2, **wide),
        "double-sided": double_sided(),
    }


def _decide(name: str, fabric: Any, events: int) -> Iterator[Any]:
    from controller.decision import ClusterView, JobArrived, JobDeparted, LinkDown, LinkUp

    scheduler = _create(name)
    random = Random(f"{name} {len(fabric.hosts)}")
    free = [gpu for host in fabric.hosts.values() for gpu in host.gpus]
    running: dict[str, Any] = {}
    down: list[str] = []
    view = ClusterView(fabric, {})
    cables = [link.name for link in fabric.links.values() if link.kind in ("tor-agg", "agg-core")]
    for number in range(events):
        drawn = random.random()
        event: Any
        if drawn < 0.05 and not down:
            down.append(random.choice(cables))
            event = LinkDown(down[0])
        elif drawn < 0.15 and down:
            event = LinkUp(down.pop())
        elif running and (drawn < 0.5 or len(free) < LARGEST_JOB):
            event = JobDeparted(random.choice(list(running)))
            free += running.pop(event.job).gpus
        else:
            job = _job(f"job{number}", fabric, free, random)
            running[job.name] = job
            event = JobArrived(job.name)
        view = replace(view, fabric=fabric.without(down), jobs=dict(running))
        decision = scheduler.decide(view, event)
        view = replace(view, decision=decision)
        yield [type(event).__name__, canonical(decision)]


def _create(name: str) -> Any:
    try:
        registry = import_module("controller.schedulers.registry")
    except ImportError:  # before the schedulers had a folder of their own
        registry = import_module("controller.registry")
    return registry.create(name)


def _job(name: str, fabric: Any, free: list[str], random: Random) -> Any:
    """A job on GPUs that are taken from ``free``: scattered ones, so that jobs contend."""
    from workloads.build import JobSpec, build_jobs

    given = random.sample(sorted(free), random.choice((4, 8, 8, 16, LARGEST_JOB)))
    for gpu in given:
        free.remove(gpu)
    (job,) = build_jobs([JobSpec(name, random.choice(MODELS), placement=tuple(given))], fabric, seed=1)
    return job


def flow(checkout: Path) -> Iterator[tuple[str, str]]:
    """Scenario and file -> digest, as the flow engine left it."""
    for scenario in sorted((checkout / "testbed" / "scenarios").glob("*.yaml")):
        with tempfile.TemporaryDirectory() as out:
            # 1: a job that cannot make its iterations in the time limit; what was written until then is compared.
            _testbed(checkout, "run", str(scenario), "--engine", "flow", "--out", out, statuses=(0, 1, 4, 5))
            (run,) = (path for path in Path(out).iterdir() if path.is_dir())
            for file in sorted(run.rglob("*")):
                if file.suffix == ".csv":
                    yield f"flow {scenario.stem} {file.relative_to(run)}", digest([file.read_text("utf-8")])
                elif file.suffix == ".json" and file.name != "manifest.json":
                    yield f"flow {scenario.stem} {file.relative_to(run)}", digest([json.loads(file.read_text("utf-8"))])


def replays(checkout: Path) -> Iterator[tuple[str, str]]:
    """Row -> digest of two days under every scheduler of figure 23, and of half a day under every manager."""
    yield from _rows(checkout, "crux-fig23", "--days", "2")
    yield from _rows(checkout, "managers-x-schedulers", "--days", "0.5")


def fig16(checkout: Path) -> Iterator[tuple[str, str]]:
    """Row -> digest of 300 generated cases."""
    yield from _rows(checkout, "crux-fig16", "--cases", "300")


def _rows(checkout: Path, name: str, *options: str) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as out:
        said = _testbed(checkout, "reproduce", name, *options, "--json", "--out", out, "--allow-degraded")
    for row in json.loads(said)["rows"]:
        yield f"{name} {row['label']}", digest([row])


def _testbed(checkout: Path, *arguments: str, statuses: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *arguments],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in statuses:
        raise SystemExit(f"testbed {' '.join(arguments)}: status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def decisions_of(checkout: Path) -> Iterator[tuple[str, str]]:
    """:func:`decisions` with the modules of ``checkout``, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).resolve()), "--here"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stdout.splitlines():
        what, _, found = line.rpartition(" ")
        yield what, found


PARTS: Final[Mapping[str, Callable[[Path], Iterator[tuple[str, str]]]]] = {
    "decisions": decisions_of,
    "fig16": fig16,
    "flow": flow,
    "replays": replays,
}


def main() -> int:
    """Print a line per result: what it is, and its digest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path("."))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    found = (
        decisions()
        if given.here
        else (line for part in given.parts or PARTS for line in PARTS[part](given.checkout.resolve()))
    )
    for what, sha in found:
        print(what, sha, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
