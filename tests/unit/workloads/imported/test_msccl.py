"""Algorithms of MSCCL: carried out on sums, refused where they do not end in what the collective promises."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from testbed.api import run_scenario
from testbed.errors import BadInputError
from testbed.scenario import load
from workloads.imported.errors import WorkloadFileError
from workloads.imported.goal import in_order
from workloads.imported.msccl import read

Steps = list[tuple[str, str, int, str, int]]
"""Type, source and target of each step of a thread block."""


def step(number: int, kind: str, source: str, off: int, target: str, to: int, dep: tuple[int, int] = (-1, -1)) -> str:
    where = f'srcbuf="{source}" srcoff="{off}" dstbuf="{target}" dstoff="{to}"'
    return f'   <step s="{number}" type="{kind}" {where} cnt="1" depid="{dep[0]}" deps="{dep[1]}" hasdep="0"/>'


def ring(gpus: int) -> str:
    """An allreduce in place, round one ring."""
    lines = [f'<algo name="ring" nchannels="1" nchunksperloop="{gpus}" ngpus="{gpus}" coll="allreduce" inplace="1">']
    for gpu in range(gpus):
        lines.append(f' <gpu id="{gpu}" i_chunks="{gpus}" o_chunks="0" s_chunks="0">')
        lines.append(f'  <tb id="0" send="{(gpu + 1) % gpus}" recv="{(gpu - 1) % gpus}" chan="0">')
        for number in range(2 * gpus - 1):
            chunk = (gpu - number) % gpus
            kind = "s" if number == 0 else "rrs" if number < gpus - 1 else "rrcs" if number == gpus - 1 else "rcs"
            lines.append(step(number, "r" if number == 2 * gpus - 2 else kind, "i", chunk, "i", chunk))
        lines += ["  </tb>", " </gpu>"]
    return "\n".join((*lines, "</algo>"))


def exchange(collective: str) -> str:
    """Two GPUs, out of place: each copies its own chunk and sends the other its own."""
    chunks = 1 if collective == "allgather" else 2
    lines = [f'<algo name="x" nchunksperloop="2" ngpus="2" coll="{collective}" inplace="0">']
    for gpu in range(2):
        peer, mine = 1 - gpu, gpu if chunks == 2 else 0
        lines.append(f' <gpu id="{gpu}" i_chunks="{chunks}" o_chunks="2" s_chunks="0">')
        lines.append(f'  <tb id="0" send="{peer}" recv="{peer}" chan="0">')
        lines.append(step(0, "s", "i", peer if chunks == 2 else 0, "o", gpu))
        lines.append(step(1, "r", "i", 0, "o", peer))
        lines += ["  </tb>", '  <tb id="1" send="-1" recv="-1" chan="0">']
        lines.append(step(0, "cpy", "i", mine, "o", gpu, (0, 0)))
        lines += ["  </tb>", " </gpu>"]
    return "\n".join((*lines, "</algo>"))


def written(path: Path, text: str) -> Path:
    file = path / "a.xml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_a_ring_sends_what_a_ring_sends(tmp_path: Path, gpus: int) -> None:
    found = read(written(tmp_path, ring(gpus)), 8000.0 * gpus)
    sent = [each.amount for each in found.operations if each.kind == "send"]
    assert found.ranks == gpus and sent == [8000] * gpus * 2 * (gpus - 1)
    assert len(in_order(found)) == len(found.operations)
    assert all(found.operations[send].peer == found.operations[receive].rank for receive, send in found.sends.items())


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_what_is_copied_and_exchanged_is_where_it_is_promised(tmp_path: Path, collective: str) -> None:
    found = read(written(tmp_path, exchange(collective)), 2000.0)
    assert [each.amount for each in found.operations if each.kind == "send"] == [1000, 1000]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type="rrcs" srcbuf="i" srcoff="1"', 'type="rcs" srcbuf="i" srcoff="1"', "chunk 1 of the output of gpu "),
        ('type="rrs" srcbuf="i" srcoff="2"', 'type="rrs" srcbuf="i" srcoff="1"', "is not what allreduce promises"),
        ('type="rrs"', 'type="zap"', "type 'zap', expected one of cpy, nop, r, rcs, re, rrc, rrcs, rrs, s"),
        ('type="rrs"', 'type="r"', "waits for ever at step "),
        ('recv="2"', 'recv="0"', "tb 0 of gpu 0, expected each once, with other GPUs as peers"),
        ('recv="2"', 'recv="-1"', "type rrs in a tb without recv, expected a peer as recv"),
        ('send="1"', 'send="9"', "send '9', expected a whole number from -1 to 2"),
        ('coll="allreduce"', 'coll="custom"', "coll 'custom', expected one of allreduce, allgather, reducescatter"),
        ('s="1" type', 's="7" type', "step 7 of tb 0, expected step 1"),
        ('srcbuf="i"', 'srcbuf="x"', "srcbuf 'x', expected i, o or s"),
        ('cnt="1"', 'cnt="2"', "1 chunks of 2 that are sent, expected as many"),
        ("</algo>", "", "not XML, expected an algorithm of MSCCL"),
        ("<algo", "<!DOCTYPE a [<!ENTITY b 'c'>]><algo", "a document type, expected none"),
        (' <gpu id="1"', ' <gpu id="0"', "gpu 0 twice, expected each once"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = ring(3)
    assert old in text
    file = written(tmp_path, text.replace(old, new, 1))
    with pytest.raises(WorkloadFileError) as error:
        read(file, 1e6)
    assert str(error.value).startswith(f"{file}:") and message in str(error.value) and "\n" not in str(error.value)


def test_a_part_that_is_added_twice_is_refused(tmp_path: Path) -> None:
    text = ring(2).replace('type="r" ', 'type="rrc" ')
    with pytest.raises(WorkloadFileError, match="a part is added a second time, expected each part once"):
        read(written(tmp_path, text), 1e6)


@pytest.mark.parametrize("seed", range(500))
def test_damage_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = list(ring(3))
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(text))
        text[place : place + chance.randint(0, 3)] = chance.choice(["", "x", "9", "-", "<", '"', "\n", "\x00", "é"])
    try:
        read(written(tmp_path, "".join(text)), 1e6)
    except WorkloadFileError as error:
        assert "\n" not in str(error) and ", expected " in str(error)


SCENARIO = """\
fabric: {kind: clos, hosts: 4, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 1600Gbps}
channels: 1
schedulers: [ecmp]
measure: {iterations: 3, warmup: 1}
"""


def test_a_ring_of_msccl_takes_as_long_as_a_ring(tmp_path: Path) -> None:
    written(tmp_path, ring(4))
    file = tmp_path / "a.yaml"
    file.write_text(f"{SCENARIO}jobs: [{{name: a, model: {{msccl: a.xml, size: 1GB}}, gpus: 4}}]\n")
    (job,) = run_scenario(file, engine="flow", out=tmp_path, index=False).summary["runs"][0]["jobs"]
    assert job["iteration_s"]["mean"] == pytest.approx(2 * 3 / 4 * 8e9 / 100e9, rel=5e-3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{msccl: a.xml}", "model has msccl and no size, expected both"),
        ("{goal: a.goal, size: 1MB}", "model has size and no msccl, expected both"),
        ("{msccl: a.xml, size: 1MB, phases: 4}", "model has phases, expected none"),
        ("{msccl: a.xml, goal: a.goal, size: 1MB}", "model has 2 files, expected one of"),
    ],
)
def test_keys_that_do_not_fit_are_named(tmp_path: Path, model: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{SCENARIO}jobs: [{{name: a, model: {model}, gpus: 4}}]\n")
    with pytest.raises(BadInputError, match=message):
        load(file)
