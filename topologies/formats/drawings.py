"""A fabric for other tools to draw or to build: Graphviz, and a topology file of containerlab."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from topologies.fabric import Fabric, Link
from topologies.units import format_rate

_SHAPES: Final[Mapping[str, str]] = {"tor": "box", "agg": "box", "core": "box"}
_COLOURS: Final[Mapping[str, str]] = {"tor": "#dbe9f6", "agg": "#fde9d0", "core": "#e6e0f0", "host": "#ffffff"}


def cables(fabric: Fabric) -> Iterator[tuple[str, str, Link]]:
    """Yield each cable between hosts and switches once: lower node, upper node, and the link upwards."""
    seen: set[str] = set()
    for link in fabric.network_links:
        if link.reverse not in seen:
            seen.add(link.name)
            port = fabric.ports.get(link.source)
            yield (link.source if port is None else port.host), link.target, link


def graphviz(fabric: Fabric) -> str:
    """Return ``fabric`` in the DOT language: hosts below, switches above, a line per pair of nodes with its rates."""
    lines = [
        f'graph "{fabric.name}" {{',
        f'  label="{_quoted(fabric.description)}"; rankdir=BT; ranksep=1.5; splines=false;',
        '  node [fontname="sans-serif", style=filled]; edge [fontname="sans-serif", fontsize=8];',
    ]
    for host in fabric.hosts.values():
        label = f"{host.name}\\n{len(host.gpus)} GPUs"
        lines.append(f'  {host.name} [shape=ellipse, fillcolor="{_COLOURS["host"]}", label="{label}"];')
    for switch in fabric.switches.values():
        lines.append(f'  {switch.name} [shape={_SHAPES[switch.tier]}, fillcolor="{_COLOURS[switch.tier]}"];')
    for tier in _SHAPES:
        members = [switch.name for switch in fabric.switches.values() if switch.tier == tier]
        if members:
            lines.append(f"  {{ rank=same; {'; '.join(members)}; }}")
    together = Counter((low, high, link.capacity) for low, high, link in cables(fabric))
    for (low, high, rate), count in together.items():
        times = f"{count} x " if count > 1 else ""
        lines.append(f'  {low} -- {high} [label="{times}{format_rate(rate)}"];')
    return "\n".join([*lines, "}"]) + "\n"


def containerlab(fabric: Fabric) -> dict[str, Any]:
    """Return ``fabric`` as a topology of containerlab: Linux containers, and a link for each cable.

    Hosts and switches are Linux containers, rates are labels of the links; queues and what a scheduler decides are not
    part of such a file.
    """
    nodes: dict[str, dict[str, Any]] = {name: {"kind": "linux", "group": "host"} for name in fabric.hosts}
    nodes |= {switch.name: {"kind": "linux", "group": switch.tier} for switch in fabric.switches.values()}
    used = Counter[str]()
    links = []
    for low, high, link in cables(fabric):
        ends = []
        for node in (low, high):
            used[node] += 1
            ends.append(f"{node}:eth{used[node]}")
        links.append({"endpoints": ends, "labels": {"rate": format_rate(link.capacity)}})
    defaults = {"linux": {"image": "alpine:latest"}}
    return {"name": fabric.name, "topology": {"kinds": defaults, "nodes": nodes, "links": links}}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
