"""Topologies of SimAI: the same nodes, links and rates as the generators make; what is wrong is one line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.topologies.formats.simai_files import topology
from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.simai import read
from topologies.generators.dcn_plus import dcn_plus
from topologies.generators.hpn import hpn
from topologies.generators.rail_optimized import rail_optimized

RATES = {"port_rate": 200e9, "fabric_rate": 400e9, "nvlink_rate": 2880e9, "gpus_per_host": 4, "nics_per_host": 4}
Made = Callable[[], Fabric]


def certificate(fabric: Fabric) -> tuple[Any, ...]:
    """What two fabrics of the same hosts have in common exactly if they are isomorphic.

    A ToR is known by the ports cabled to it, an aggregation switch by its cables to such ToRs.
    """
    ports: dict[str, list[tuple[str, float]]] = {}
    for port in fabric.ports.values():
        ports.setdefault(port.switch, []).append((port.name, fabric.uplink(port.name).capacity))
    tors = {tor: tuple(sorted(those)) for tor, those in ports.items()}
    assert len(set(tors.values())) == len(tors)
    above: dict[str, list[tuple[Any, float]]] = {}
    for link in fabric.links.values():
        if link.kind == "tor-agg" and link.source in tors:
            above.setdefault(link.target, []).append((tors[link.source], link.capacity))
    inside = {(link.name, link.capacity) for link in fabric.links.values() if link.kind in ("nvlink", "pcie")}
    meshes = Counter(tuple(sorted(those)) for those in above.values())
    return dict(fabric.hosts), dict(fabric.nics), set(tors.values()), meshes, inside


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            topology(6, 4, 4, rails=True, aggregations=3),
            lambda: rail_optimized(hosts=6, segments=2, hosts_per_segment=4, aggregations=3, **RATES),
        ),
        (
            topology(4, 4, 2, rails=True, sides=2, aggregations=4),
            lambda: hpn(hosts=4, segments=2, planes=1, aggregations=4, **RATES),
        ),
        (
            topology(4, 4, 2, planes=2, rails=True, sides=2, aggregations=4),
            lambda: hpn(hosts=4, segments=2, planes=2, aggregations=4, **RATES),
        ),
        (topology(4, 4, 2, rails=False), lambda: dcn_plus(hosts=4, segments=2, aggregations=2, **RATES)),
        (
            topology(6, 4, 2, rails=False, sides=2),
            lambda: dcn_plus(hosts=6, segments=3, tors_per_segment=2, aggregations=2, **RATES),
        ),
    ],
    ids=["rail-optimized", "hpn, one plane", "hpn, two planes", "dcn+", "dcn+, two ToRs"],
)
def test_a_template_of_simai_is_the_fabric_of_the_generator(tmp_path: Path, text: str, made: Made) -> None:
    file = tmp_path / "topology"
    file.write_text(text, "utf-8")
    assert certificate(read(file)) == certificate(made())


def test_nvlinks_to_several_switches_add_up(tmp_path: Path) -> None:
    file = tmp_path / "topology"
    lines = ["0 2 100Gbps 0ms 0", "0 3 100Gbps 0ms 0", "1 2 100Gbps 0ms 0", "1 3 100Gbps 0ms 0"]
    file.write_text("\n".join(["5 2 2 1 6 A100", "2 3 4", *lines, "0 4 40Gbps 0ms 0", "1 4 40Gbps 0ms 0"]), "utf-8")
    assert read(file).links["h0g0->h0nv"].capacity == 200e9


GOOD = topology(2, 2, 1, rails=False)


@pytest.mark.parametrize(
    ("line", "content", "message"),
    [
        (1, "", ":1: the header is '', expected nodes, GPUs per server, NVSwitches, switches, links and GPU type"),
        (1, "10 3 2 4 12 H100", ":1: 4 GPUs on servers of 3, expected nodes less switches to be GPUs of whole servers"),
        (1, "10 2 2 4 13 H100", ":1: 13 links are announced and 12 follow, expected as many links as announced"),
        (2, "4 5 6 7 8 8", ":2: 6 ids of switches, expected the ids 4 to 9, each once"),
        (3, "0 99 100Gbps 0ms 0", ":3: unknown node '99', expected 0 to 9"),
        (3, "0 4 100Gbps 0ms", ":3: 4 words, expected source, target, bandwidth, latency and error rate"),
        (3, "0 4 fast 0ms 0", ":3: bandwidth is 'fast', expected a rate such as 200Gbps"),
        (3, "0 4 100Gbps 0ms 0.1", ":3: error rate is '0.1', expected 0: losses are not emulated"),
        (
            3,
            "0 1 100Gbps 0ms 0",
            ":3: a cable joins 0 and 1, expected GPU to NVSwitch, GPU to switch or switch to switch",
        ),
        (4, "1 6 200Gbps 0ms 0", ": GPU 0 has no cable to a switch, expected a NIC for every GPU"),
        (
            11,
            "6 7 100Gbps 0ms 0",
            ":11: a cable joins tor 6 and tor 7, expected cables from ToRs to aggregation and from there to core",
        ),
    ],
)
def test_what_is_wrong_names_its_line(tmp_path: Path, line: int, content: str, message: str) -> None:
    lines = GOOD.splitlines()
    lines[line - 1] = content
    file = tmp_path / "topology"
    file.write_text("\n".join(lines), "utf-8")
    with pytest.raises(FabricFileError) as refused:
        read(file)
    assert str(refused.value) == f"{file}{message}"


@pytest.mark.parametrize("seed", range(500))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    text = list(topology(4, 4, 2, rails=True))
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(text))
        text[place : place + draw.randint(0, 3)] = draw.choice(["", "9", " ", "\n", "-1", "x", "1e9", "\x00"])
    file = tmp_path / "topology"
    file.write_text("".join(text), "utf-8")
    try:
        read(file)
    except FabricFileError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)
