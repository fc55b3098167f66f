"""Attacks on fabrics: files that nearly describe one, and generators of other packages that return an odd one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final
from unittest.mock import patch

from benchmarks.attack import samples
from benchmarks.attack.inputs import Verdict, command
from benchmarks.attack.mutation import odd_value, structural, textual
from testbed.scenario.network import fabrics
from topologies.clos import clos
from topologies.fabric import Fabric, Link
from topologies.registry import BUILT_IN

SCENARIO: Final = """\
fabric: {FABRIC}
jobs:
  - {name: one, model: bert, gpus: 4, channels: 1}
  - {name: two, model: moe, gpus: 2, channels: 1, start: 1s}
schedulers: [SCHEDULER]
measure: {iterations: 2, warmup: 0, time_limit: 20s}
"""
CLOS: Final = """kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 2, tors: 2, aggregations: 2, port_rate: 1Gbps,
         fabric_rate: 1Gbps"""
SCHEDULERS: Final = ("ecmp", "crux", "sincronia", "cassini", "hedera", "sglb", "taccl-star")
VERBS: Final = (*[("validate",)] * 2, *[("plan", "--engine=flow")] * 4, ("plan",), ("run", "--engine=flow"))
"""A run takes seconds, for its plots above all: it is drawn least often."""
CAPACITIES: Final = (0.0, -1.0, 1e-9, 1.0, 1e300, math.nan, math.inf, 10**4000, "fast", None, True)


def fabric_file(number: int, random: Random, folder: Path) -> Verdict:
    """Use a fabric file of some format that was changed a little."""
    key = random.choice(("node_link", "simai"))
    path = folder / "fabric"
    if key == "simai":
        path.write_bytes(textual(samples.SIMAI_TOPOLOGY, random, random.choice((0, 1, 2))))
    else:
        data = _rewired(json.loads(samples.NODE_LINK), random)
        times = random.choice((0, 0, 1, 2))
        path.write_text(json.dumps(structural(data, random, times) if times else data, default=str), "utf-8")
    return _used(f"{key}: fabric", random, folder)


def fabric_plugin(number: int, random: Random, folder: Path) -> Verdict:
    """Use a generator of another package whose fabric has something odd about it; few return another at every call."""
    one = _odd(random)
    with _generated((lambda: _odd(random)) if random.random() < 0.1 else (lambda: one)):
        return _used(CLOS, random, folder)


def _used(fabric: str, random: Random, folder: Path) -> Verdict:
    path = folder / "s.yaml"
    text = SCENARIO.replace("FABRIC", fabric).replace("SCHEDULER", random.choice(SCHEDULERS))
    if random.random() < 0.3:
        text += "failures: [{link: tor0->agg0, at: 1s, until: 2s}]\n"
    if random.random() < 0.2:
        text += "manager: consolidated\n"
    path.write_text(text, "utf-8")
    verb, *options = random.choice(VERBS)
    return command([verb, str(path), *options, *([f"--out={folder}/runs"] if verb == "run" else [])])


def _rewired(data: dict[str, Any], random: Random) -> dict[str, Any]:
    """The graph with some of its edges gone, doubled, slower, or led to another node."""
    edges = data["edges"]
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        edge = random.choice(edges)
        match random.randrange(4):
            case 0:
                edges.remove(edge)
            case 1:
                edges.append(dict(edge))
            case 2:
                edge["rate"] = random.choice(("1bps", "1Tbps", "10Gbps", 1e9, 0, -1))
            case _:
                edge["target"] = random.choice(data["nodes"])["id"]
        if not edges:
            break
    return data


@contextmanager
def _generated(generator: Callable[[], object]) -> Iterator[None]:
    """The kind ``clos`` comes from another package meanwhile, which calls ``generator``."""

    def odd(**_given: object) -> object:
        return generator()

    own = {**fabrics.GENERATORS, "clos": odd}
    without = {kind: each for kind, each in BUILT_IN.items() if kind != "clos"}
    with (
        patch.object(fabrics, "GENERATORS", MappingProxyType(own)),
        patch.object(fabrics, "BUILT_IN", MappingProxyType(without)),
    ):
        yield


def _odd(random: Random) -> object:
    """A fabric with one to three odd parts; now and then something else altogether."""
    if random.random() < 0.05:
        return random.choice((None, 3, "clos", Fabric, {}))
    fabric: Any = clos(
        hosts=4, gpus_per_host=2, nics_per_host=2, tors=2, aggregations=2, port_rate=1e11, fabric_rate=1e11
    )
    for _ in range(random.choice((1, 1, 2, 3))):
        with suppress(Exception):  # what one change left may have nothing that another could change
            fabric = random.choice(_CHANGES)(fabric, random)
    return fabric


def _without_links(fabric: Fabric, random: Random) -> Fabric:
    """Some cables are gone, one direction of some."""
    links = dict(fabric.links)
    for name in random.sample(list(links), random.choice((1, 2, 4, 8))):
        gone = links.pop(name, None)
        if gone is not None and random.random() < 0.7:
            links.pop(gone.reverse, None)
    return replace(fabric, links=links)


def _cut(fabric: Fabric, random: Random) -> Fabric:
    """A switch has no cables to other switches."""
    switch = random.choice(list(fabric.switches))
    kept = {
        name: link
        for name, link in fabric.links.items()
        if link.kind == "host-tor" or switch not in (link.source, link.target)
    }
    return replace(fabric, links=kept)


def _other_rates(fabric: Fabric, random: Random) -> Fabric:
    links: dict[str, Any] = dict(fabric.links)
    for name in random.sample(list(links), random.choice((1, 3, len(links)))):
        links[name] = replace(links[name], capacity=random.choice(CAPACITIES))
    return replace(fabric, links=links)


def _other_part(fabric: Any, random: Random) -> Any:
    """A field of some host, NIC, port, switch or link is something else."""
    holder = random.choice(("hosts", "nics", "ports", "switches", "links"))
    parts: dict[str, Any] = dict(getattr(fabric, holder))
    if not parts:
        return fabric
    name = random.choice(list(parts))
    match random.randrange(4):
        case 0:
            del parts[name]
        case 1:
            parts[random.choice(("x", "", "h0", "tor0", " ", "a\nb", name * 50))] = parts[name]
        case 2:
            parts[name] = odd_value(random)
        case _:
            part = parts[name]
            if hasattr(part, "__dataclass_fields__"):
                field = random.choice(fields(part)).name
                values = (odd_value(random), (), random.choice(list(parts)), getattr(part, field))
                parts[name] = replace(part, **{field: random.choice(values)})
    return replace(fabric, **{holder: parts})


def _more_links(fabric: Fabric, random: Random) -> Fabric:
    """A cable more, between any two nodes, of any kind."""
    one, other = random.sample([*fabric.switches, *fabric.ports, *fabric.gpus], 2)
    kind: Any = random.choice(("tor-agg", "agg-core", "host-tor", "pcie", "nvlink", "wire"))
    there, back = f"{one}->{other}.x", f"{other}->{one}.x"
    more = {
        there: Link(there, one, other, kind, 1e11, back),
        back: Link(back, other, one, kind, 1e11, there),
    }
    return replace(fabric, links={**fabric.links, **more})


def _empty(fabric: Any, random: Random) -> Any:
    nothing: dict[str, Any] = {random.choice(("hosts", "nics", "ports", "switches", "links")): {}}
    return replace(fabric, **nothing)


def _other_words(fabric: Any, random: Random) -> Any:
    field = random.choice(("name", "description", "intra_host", "pcie_queues"))
    return replace(fabric, **{field: odd_value(random)})


_CHANGES: Final = (
    _without_links,
    _cut,
    _cut,
    _other_rates,
    _other_part,
    _other_part,
    _more_links,
    _empty,
    _other_words,
)
