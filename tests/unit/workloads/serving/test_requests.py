"""Requests: a Poisson process that the seed fixes, and the two published forms of traces."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from workloads.imported.errors import WorkloadFileError
from workloads.serving.requests import PoissonArrivals, read_requests
from workloads.serving.served import Request


def test_times_between_requests_are_exponential_and_those_of_the_seed() -> None:
    arrivals = PoissonArrivals(rate=4.0, prompt=1000, output=100, count=20_000)
    found = arrivals.requests("1")
    gaps = [later.arrival_s - each.arrival_s for each, later in pairwise(found)]
    assert fmean(gaps) == pytest.approx(0.25, rel=0.03)
    assert pstdev(gaps) == pytest.approx(0.25, rel=0.03)
    assert found == arrivals.requests("1") != arrivals.requests("2")


def test_azures_traces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "code.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,4808,10\n"
        "2023-11-16 18:17:04.0319600,3180,8\n"
    )
    first, second = read_requests(path).requests("")
    assert first == Request(0.0, 4808, 10)
    assert (second.prompt, second.output) == (3180, 8)
    assert second.arrival_s == pytest.approx(0.052)


def test_mooncakes_traces_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 3000, "input_length": 20, "output_length": 2, "hash_ids": [1]}\n\n'
        '{"timestamp": 1000, "input_length": 10, "output_length": 1, "hash_ids": []}\n'
    )
    assert read_requests(path).requests("") == (Request(0.0, 10, 1), Request(2.0, 20, 2))


def test_no_more_requests_are_read_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 1, "input_length": 20, "output_length": 2}\nno request\n')
    assert len(read_requests(path, most=1).requests("")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: is empty, expected a trace of requests"),
        ("a,b\n", ":1: begins with 'a,b', expected the columns TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", ":1: has no request, expected at least one"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,5\n", ":2: has 2 cells, expected 3"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,5,5\n", ":2: time 'noon' is none, expected a date"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,0,5\n", ":2: the prompt has '0' tokens, expected 1 to"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,5,many\n", ":2: the answer has 'many' tokens, expected"),
        ('{"timestamp": 1}\n', ":1: is no request, expected an object with timestamp"),
        ('{"timestamp": true, "input_length": 1, "output_length": 1}\n', ":1: time 'True' is none, expected"),
        ('{"timestamp": 1, "input_length": 1.5, "output_length": 1}\n', ":1: the prompt has '1.5' tokens, expected"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}\n', ":1: time 'nan' is none, expected"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(WorkloadFileError) as raised:
        read_requests(path)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFileError, match=r"nowhere\.csv:1: cannot be read: No such file"):
        read_requests(tmp_path / "nowhere.csv")
