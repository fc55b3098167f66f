"""GOAL schedules: what is read, what is refused in one line, and that they run as long as they say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loggops import simulated_s

from testbed.api import run_scenario
from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.results.trace.goal import schedule
from testbed.scenario import build_fabric, build_jobs, load
from workloads.imported.errors import WorkloadFileError
from workloads.imported.goal import GoalSchedule, Operation, in_order, read

PAIR = """\
// two ranks
num_ranks 2

rank 0 {
l1: calc 1000 cpu 0 /* a
comment */
l2: send 10b to 1 tag 3
l2 requires l1
l3: recv 20b from 1
l4: calc 5
l4 requires l3
}

rank 1 {
l1: recv 10b from 0 tag 3 cpu 1
b: send 20b to 0 tag 0 nic 1
b requires l1
c: calc 7
c irequires b
}
"""


def written(path: Path, text: str) -> Path:
    file = path / "a.goal"
    file.write_text(text)
    return file


def test_operations_dependencies_and_pairs_are_read(tmp_path: Path) -> None:
    found = read(written(tmp_path, PAIR))
    assert found.ranks == 2 and found.bytes_sent == 30
    assert found.operations == (
        Operation(0, "calc", 1000),
        Operation(0, "send", 10, 1, 3, needs=(0,)),
        Operation(0, "recv", 20, 1),
        Operation(0, "calc", 5, needs=(2,)),
        Operation(1, "recv", 10, 0, 3, cpu=1),
        Operation(1, "send", 20, 0, nic=1, needs=(4,)),
        Operation(1, "calc", 7, needs=(4,)),  # may start when b may
    )
    assert found.sends == {4: 1, 2: 5}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("num_ranks 2", "ranks 2", 2, "'ranks 2', expected num_ranks and a number"),
        ("num_ranks 2", "num_ranks 0", 2, "0 ranks, expected 1 to 10000"),
        ("rank 1 {", "rank 0 {", 14, "rank 0 twice, of 2, expected each rank once"),
        ("rank 1 {", "rank 2 {", 14, "rank 2 of 2, expected each rank once"),
        ("rank 1 {", "rank one {", 14, "'rank one {', expected a rank and an opening brace"),
        ("calc 1000", "calc -5", 5, "'l1: calc -5 cpu 0', expected calc, send, recv, requires or a closing brace"),
        ("send 10b to 1", "send 10b from 1", 7, "send from, expected send .. to, recv .. from"),
        ("send 10b to 1", "send 10b to 0", 7, "rank 0 as the peer of rank 0, expected another of 2 ranks"),
        ("send 10b to 1", "send 10b to 9", 7, "rank 9 as the peer of rank 0, expected another of 2 ranks"),
        ("recv 20b from 1", "recv 20b from -1", 9, "a message from anybody or of any tag, expected a rank and a tag"),
        ("recv 20b from 1", "recv 21b from 1", 9, "21 bytes of 20 that are sent, expected as many"),
        ("recv 20b from 1", "recv 20b from 1 tag 8", 9, "rank 1 sends no such message, expected a send for each"),
        ("l1: recv 10b from 0 tag 3", "l1: calc 1", 7, "rank 1 receives no such message, expected a recv for each"),
        ("l2 requires l1", "l2 requires l9", 8, "'l9' is no label of rank 0, expected one of a line before"),
        ("l4: calc 5", "l1: calc 5", 10, "label 'l1' a second time, expected another"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    file = written(tmp_path, PAIR.replace(old, new, 1))
    with pytest.raises(WorkloadFileError) as error:
        read(file)
    assert str(error.value) == f"{file}:{line}: {message}"


def test_circles_and_open_ranks_are_refused(tmp_path: Path) -> None:
    wait = "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
    other = "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\n"
    with pytest.raises(WorkloadFileError, match="wait for each other in a circle"):
        read(written(tmp_path, wait + other))
    with pytest.raises(WorkloadFileError, match="rank 0 is not closed"):
        read(written(tmp_path, "num_ranks 1\nrank 0 {\n"))


@pytest.mark.parametrize("seed", range(500))
def test_damage_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = list(PAIR)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(text))
        text[place : place + chance.randint(0, 3)] = chance.choice(
            ["", "x", "9", "-", "{", "}", "\n", "l1", "\x00", "é"]
        )
    try:
        assert in_order(read(written(tmp_path, "".join(text))))
    except WorkloadFileError as error:
        assert "\n" not in str(error) and ", expected " in str(error)


@given(st.randoms(use_true_random=False), st.integers(2, 6))
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read_back_and_written_the_same(
    tmp_path_factory: pytest.TempPathFactory, draw: random.Random, ranks: int
) -> None:
    operations: list[Operation] = []
    for tag in range(draw.randint(1, 20)):
        source, target = draw.sample(range(ranks), 2)
        mine = [place for place, each in enumerate(operations) if each.rank == source]
        needs = tuple(draw.sample(mine, min(len(mine), draw.randint(0, 2))))
        operations.append(
            Operation(source, "send", draw.randint(0, 999), target, tag, nic=draw.randint(0, 1), needs=needs)
        )
        operations.append(Operation(target, "recv", operations[-1].amount, source, tag))
        operations.append(Operation(source, "calc", draw.randint(0, 10**9), cpu=draw.randint(0, 3), needs=needs))
    text = GoalSchedule("", ranks, tuple(operations)).text()
    file = tmp_path_factory.mktemp("goal") / "a.goal"
    file.write_text(text)
    assert read(file).text() == text


FABRIC = """\
fabric: {kind: clos, hosts: 4, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 1600Gbps}
channels: 1
schedulers: [ecmp]
measure: {iterations: 1, warmup: 0}
"""


@pytest.mark.parametrize("collective", ["ring", "alltoall", "point-to-point"])
def test_an_exported_job_read_back_takes_as_long(tmp_path: Path, collective: str) -> None:
    file = tmp_path / "a.yaml"
    job = f"name: a, model: gpt, gpus: 4, collective: {collective}, overlap: 0, compute: 200ms, flops: 1TFLOP"
    file.write_text(f"{FABRIC}jobs: [{{{job}, communication: 2GB}}]\n")
    scenario = load(file)
    fabric = build_fabric(scenario)
    text = schedule(build_jobs(scenario, fabric), fabric).text()
    (tmp_path / "a.goal").write_text(text)
    again = tmp_path / "b.yaml"
    again.write_text(f"{FABRIC}jobs: [{{name: a, model: {{goal: a.goal}}, gpus: 4}}]\n")
    took = [
        run_scenario(each, engine="flow", out=tmp_path, index=False).summary["runs"][0]["jobs"][0]
        for each in (file, again)
    ]
    first, second = (each["iteration_s"]["mean"] for each in took)
    assert second == pytest.approx(first, rel=5e-3) and second == pytest.approx(simulated_s(text, 8e-11), rel=5e-3)
    assert took[1]["compute_source"] == "schedule"


def test_a_schedule_needs_a_host_per_rank_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, PAIR)
    file = tmp_path / "a.yaml"
    for more, message in (
        ("gpus: 4", "has 4 hosts, its schedule is for 2 ranks: a host each"),
        ("gpus: 2, compute: 1s", "has compute, expected none: it follows from its schedule"),
    ):
        file.write_text(f"{FABRIC}jobs: [{{name: a, model: {{goal: a.goal}}, {more}}}]\n")
        with pytest.raises(BadInputError, match=message):
            scenario = load(file)
            build_jobs(scenario, build_fabric(scenario))
    file.write_text(f"{FABRIC}jobs: [{{name: a, model: {{goal: a.goal, group: data}}, gpus: 2}}]\n")
    with pytest.raises(BadInputError, match="has group, expected none: a schedule has every operation"):
        load(file)


def test_the_command_shows_what_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, PAIR)
    assert main(["import", str(file)]) == 0
    assert "2 ranks, a host each; 3 computations of 1.012e-06 s, 2 messages of 30 bytes" in capsys.readouterr().out
    assert main(["import", str(file), "--json"]) == 0
    assert '"send": 2' in capsys.readouterr().out
    assert main(["import", str(file), "--gpus", "4"]) == 2
    assert "--gpus is given, expected none" in capsys.readouterr().err
