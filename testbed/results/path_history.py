"""The paths of a job over the time of a run, from the recorded decisions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.results.record import DecisionRow
from topologies.fabric import Fabric, Path
from workloads.job import Job

Paths = Mapping[str, Path]
"""Flow id -> links."""


@dataclass(frozen=True, slots=True)
class PathsFrom:
    """The ``paths`` that the flows of a job have from ``time_s`` on."""

    time_s: float
    paths: Paths


def path_history(job: Job, decisions: Sequence[DecisionRow], begin_s: float) -> tuple[PathsFrom, ...]:
    """Return the paths of ``job`` from ``begin_s`` on, an item per change; empty if some flow never has one."""
    found: list[PathsFrom] = []
    seen: object = None
    for row in decisions:
        if row.decision.paths is seen:
            continue
        seen = row.decision.paths
        paths = {flow.id: seen[flow.id] for flow in job.flows if flow.id in seen}
        if len(paths) < len(job.flows) or (found and found[-1].paths == paths):
            continue
        if found and row.time_s <= begin_s:
            found.pop()
        found.append(PathsFrom(row.time_s, paths))
    return tuple(found)


def own_links(paths: Paths, fabric: Fabric) -> dict[str, Path]:
    """Return ``paths`` with a link of its own for each flow in place of every link between switches."""
    return {
        flow: tuple(name if fabric.links[name].kind == "host-tor" else own_link(name, flow) for name in path)
        for flow, path in paths.items()
    }


def own_link(link: str, flow: str) -> str:
    """The name of the link that ``flow`` has to itself in place of ``link``."""
    return f"{link} of {flow}"


def collides(paths: Paths, fabric: Fabric) -> bool:
    """Whether two of the flows share a link between switches."""
    used = [name for path in paths.values() for name in path if fabric.links[name].kind != "host-tor"]
    return len(used) > len(set(used))
