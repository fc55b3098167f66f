"""The attack counts what it says; its samples are right before they are mutated; a few cases are clean."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest
import yaml

from benchmarks.attack import arena, inputs, outputs, samples
from benchmarks.attack.__main__ import KINDS, attack, line_of
from benchmarks.attack.arena import CaseResult, Ending, fight
from benchmarks.attack.mutation import structural, textual
from testbed.api import run_scenario
from testbed.metrics.checks import parse_check
from testbed.scenario import build_fabric, build_jobs, build_managed, load
from workloads.traces.registry import read_trace


@pytest.mark.parametrize("number", range(len(samples.SCENARIOS)))
def test_a_scenario_is_right_before_it_is_mutated(number: int, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(samples.SCENARIOS[number])
    scenario = load(path)
    fabric = build_fabric(scenario)
    assert build_jobs(scenario, fabric) or build_managed(scenario, fabric)


@pytest.mark.parametrize("kind", samples.TRACES)
def test_a_trace_is_right_before_it_is_mutated(kind: str, tmp_path: Path) -> None:
    files = samples.TRACES[kind]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read_trace(tmp_path if len(files) > 1 else tmp_path / next(iter(files))).jobs


@pytest.mark.parametrize("text", samples.CHECKS)
def test_a_check_is_right_before_it_is_mutated(text: str) -> None:
    assert parse_check(text).evaluate(inputs.SUMMARY).left is not None


def test_a_request_is_answered_before_it_is_mutated(tmp_path: Path) -> None:
    for method, target, body in outputs.REQUESTS:
        data = body()
        server = outputs._server()
        if "big" in target:
            server.answer("POST", "/jobs", outputs._post_job)
        assert outputs._answered(server.answer(method, target, lambda data=data: data)) == ("accepted", ""), target


def test_the_same_seed_makes_the_same_mutant() -> None:
    data = yaml.safe_load(samples.FULL)
    for seed in range(50):
        assert textual(samples.FULL, Random(seed), 3) == textual(samples.FULL, Random(seed), 3)
        one, other = (structural(data, Random(seed), 3) for _ in range(2))
        assert repr(one) == repr(other)


def test_each_ending_of_a_case_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "LIMIT_S", 0.5)
    monkeypatch.setattr(arena, "LIMIT_BYTES", 2**28)
    monkeypatch.setattr(arena, "CASES_PER_CHILD", 4)

    def case(number: int, folder: Path) -> tuple[Ending, str]:
        if number == 1:
            time.sleep(60)
        if number == 2:
            bytearray(2**30)
        if number == 3:
            raise RuntimeError("a\nb")
        if number == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return ("accepted" if number % 2 else "refused"), ""

    results = sorted(fight(case, range(9), tmp_path), key=lambda result: result.number)
    endings = [result.ending for result in results]
    assert endings == ["refused", "hang", "memory", "unclean", "refused", "accepted", "unclean", "accepted", "refused"]
    assert results[3].detail.startswith("RuntimeError: a b (")
    assert results[6].detail == "died: -9"


@pytest.mark.parametrize(
    ("status", "said", "ending"),
    [
        (0, "", "accepted"),
        (5, "", "accepted"),
        (2, "s.yaml:3: wrong, expected right\ns.yaml:4: wrong, expected right\n", "refused"),
        (2, "wrong, expected right\n", "unclean"),
        (2, "s.yaml:3: \x1b[31mwrong\n", "unclean"),
        (2, "s.yaml:3: " + "x" * 3000, "unclean"),
        (2, "s.yaml:3: wrong\n\ns.yaml:3: right\n", "unclean"),
        (2, "", "unclean"),
        (1, "testbed: KeyError: 'a'; please report; details in /tmp/x", "unclean"),
        (1, "testbed: out of memory\n", "memory"),
        (1, "Traceback (most recent call last):\ns.yaml", "unclean"),
    ],
)
def test_a_refusal_is_clean_where_each_line_is_one_that_names_the_file(status: int, said: str, ending: Ending) -> None:
    assert inputs.of_command(status, said, "s.yaml")[0] == ending


@pytest.mark.parametrize("ending", ["unclean", "hang", "memory"])
def test_a_single_case_that_is_not_clean_misses_the_target(ending: Ending) -> None:
    good = [CaseResult(number, "refused", 0.1) for number in range(9)]
    assert line_of("scenario", good).outcome == "pass"
    assert line_of("scenario", [*good, CaseResult(9, ending, 0.1)]).outcome == "missed"


FIRST = {"command-line": 0}
FEW = {"command-line": 2, "flow": 6, "run-directory": 6, "fabric-file": 40, "fabric-plugin": 100}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The flow engine is compiled once: in a new checkout that alone may take a case longer than it has."""
    run_scenario("hello", engine="flow", overrides=["checks=[]"], out=tmp_path_factory.mktemp("compiled"))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", [kind for kind in KINDS])
def test_a_few_cases_of_each_kind_are_clean(kind: str) -> None:
    told: list[str] = []
    numbers = range(FIRST.get(kind, 100), FIRST.get(kind, 100) + FEW.get(kind, 12))
    line = attack(kind, numbers, 1, told.append)
    assert told == []
    assert line.columns["cases"] == len(numbers)


def test_a_damaged_run_directory_is_read_in_bounded_time_and_nothing_is_written_elsewhere() -> None:
    line = attack("run-directory", range(100, 106), 1, lambda said: None)
    assert (line.columns["hang"], line.columns["memory"], line.columns["cases"]) == (0, 0, 6)
