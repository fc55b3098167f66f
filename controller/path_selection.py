"""Path selection of Crux (section 4.1): intensive jobs choose first, each flow the least loaded path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies.fabric import Fabric, Path
from workloads.job import Job


def select_paths(fabric: Fabric, jobs: Sequence[Job], iteration_s: Mapping[str, float]) -> dict[str, Path]:
    """Return flow id -> path, the jobs placed in the given order (highest intensity first).

    Of a flow's candidates the one with the smallest (largest load / capacity on it, then their
    sum) is taken, the lowest index on a tie. Load is in bytes per second: a flow's bytes over
    ``iteration_s`` of its job alone.
    """
    load: dict[str, float] = {}
    paths: dict[str, Path] = {}
    for job in jobs:
        period = iteration_s[job.name]
        for flow in job.flows:
            path = least_loaded(fabric.candidate_paths(flow.source, flow.target), load)
            rate = flow.bytes / period if period > 0 else 0.0
            for link in path:
                load[link] = load.get(link, 0.0) + rate * 8 / fabric.links[link].capacity
            paths[flow.id] = path
    return paths


def least_loaded(candidates: Sequence[Path], load: Mapping[str, float]) -> Path:
    """Return the first of ``candidates`` with the smallest (maximum, sum) of ``load`` over its links."""
    best, best_cost = candidates[0], (float("inf"), float("inf"))
    for path in candidates:
        loads = [load.get(link, 0.0) for link in path]
        cost = (max(loads), sum(loads))
        if cost < best_cost:
            best, best_cost = path, cost
    return best
