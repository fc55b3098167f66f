"""A scenario that would take all memory or all time is refused in one line that names the limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import BadInputError
from testbed.scenario import build_fabric, build_jobs, load
from testbed.scenario.document import DocumentError, parse_yaml
from topologies.limits import JOBS, YAML_BYTES

SMALL = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
jobs: [{name: one, model: bert, gpus: 4}]
schedulers: [ecmp]
"""


def refusal(text: str, folder: Path) -> str:
    """What is said of the scenario ``text``, without its file's name."""
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as error:
        scenario = load(path)
        build_jobs(scenario, build_fabric(scenario))
    said = str(error.value)
    assert len(said.splitlines()) == 1
    assert said.startswith(f"{path}:")
    return said.removeprefix(f"{path}:")


def bomb(inner: Callable[[str], str], first: str) -> str:
    """Ten levels, each of which names the one below ten times."""
    levels = [f"a0: &a0 {first}"]
    levels += [f"a{level}: &a{level} {inner(', '.join([f'*a{level - 1}'] * 10))}" for level in range(1, 11)]
    return "\n".join(levels) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        bomb(lambda names: f"[{names}]", "[x, x]"),
        bomb(lambda names: f"{{<<: [{names}]}}", "{x: 1, y: 2}"),
        bomb(lambda names: f"{{<<: [{names}], k: 1}}", "{x: 1, y: 2}"),
        "a: [" + "1," * 100_001 + "]",
    ],
    ids=["aliases", "merges", "merges and keys", "values"],
)
def test_a_document_of_too_many_values_is_refused(text: str, tmp_path: Path) -> None:
    assert "more than 100000 values, aliases counted each time, expected at most 100000" in refusal(text, tmp_path)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "a pipe and no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "a device and no regular file"),
        (lambda path: path.write_bytes(b"#" * (YAML_BYTES + 1)), f"{YAML_BYTES + 1} bytes, more than {YAML_BYTES}"),
    ],
)
def test_a_file_that_never_ends_or_is_too_large_is_not_read(
    make: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.yaml"
    make(path)
    with pytest.raises(BadInputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: cannot be read ({why}")
    assert f"expected a scenario file of at most {YAML_BYTES} bytes" in str(error.value)


def test_a_mapping_that_merges_itself_ends() -> None:
    assert parse_yaml("a: &a {<<: *a, b: 1}\n", "x").data == {"a": {"b": 1}}


def test_of_merged_mappings_the_first_and_the_own_keys_win() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n"
    assert parse_yaml(text, "x").data == {
        "a": {"x": 1, "y": 1},
        "b": {"x": 2, "z": 2},
        "c": {"x": 1, "y": 3, "z": 2},
    }


def test_what_merges_no_mapping_is_refused_at_its_line() -> None:
    with pytest.raises(DocumentError, match="x:2: not valid YAML: '<<' merges something else than mappings"):
        parse_yaml("a: 1\nb: {<<: 3}\n", "x")


@pytest.mark.parametrize("number", ["1" * 5000, "1:" * 3000 + "1", "0x" + "f" * 5000])
def test_a_number_of_thousands_of_digits_is_refused(number: str, tmp_path: Path) -> None:
    said = refusal(f"{SMALL}seed: {number}\n", tmp_path)
    assert said.startswith(f"6: a value of {len(number)} characters that is no text, expected at most 100")


def test_a_message_stays_one_line_whatever_is_quoted_in_it(tmp_path: Path) -> None:
    said = refusal(SMALL.replace("gpus: 4", r'gpus: "a\nb\e[31m' + "x" * 50_000 + '"'), tmp_path)
    assert r"a\nb\x1b[31m" in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("aggregations: 2", "aggregations: 2, parallel_links: 1000000", "impossible fabric: links of the fabric must"),
        ("hosts: 4", "hosts: 65536, ports_per_nic: 200", "impossible fabric: hosts must have at most 2000000 links"),
        ("gpus: 4", f"gpus: 1, count: {JOBS}", f"the jobs ask for {JOBS} GPUs on 8"),
        (
            "[{name: one,",
            f"[{{name: o, model: bert, gpus: 1, count: {JOBS}}}, {{name: one,",
            f"expected at most {JOBS}",
        ),
        ("gpus: 4", "gpus: 4, gradients: {every: 1000000000}", "gradients.every is 1000000000, expected at most 1000"),
    ],
)
def test_a_billion_of_something_is_refused_before_it_is_made(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(SMALL.replace(old, new), tmp_path)


def test_more_messages_than_an_iteration_may_have_are_refused(tmp_path: Path) -> None:
    large = SMALL.replace("hosts: 4", "hosts: 1100").replace("gpus: 4", "gpus: 2200, collective: alltoall")
    assert "too many messages, expected at most 1000000 in an iteration of all jobs" in refusal(large, tmp_path)


def test_more_jobs_than_can_be_placed_on_so_many_gpus_are_refused(tmp_path: Path) -> None:
    large = SMALL.replace("hosts: 4", "hosts: 20000").replace("gpus: 4", f"gpus: 1, count: {JOBS}")
    assert f"there are {JOBS} jobs on 40000 GPUs, expected at most 5000000 jobs x GPUs" in refusal(large, tmp_path)


@pytest.mark.parametrize("name", ["b\u00e9", "\u0661", "a b", "a--b", "-a", "a-", "a/b", "a:b", "a" * 65, "1a", ""])
def test_a_name_outside_its_alphabet_or_length_is_refused(name: str, tmp_path: Path) -> None:
    said = refusal(SMALL.replace("name: one", f'name: "{name}"'), tmp_path)
    assert "jobs.0.name is" in said
    assert "expected a letter (A to Z, a to z)" in said or "expected at most 64 characters" in said


@pytest.mark.parametrize("name", ["a", "A_1", "bert-0", "gpt67-split-1", "a" * 64])
def test_a_name_of_the_alphabet_is_accepted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SMALL.replace("name: one", f"name: {name}"))
    assert load(path).jobs[0].name == name


def test_a_file_with_a_long_name_still_gives_the_scenario_a_name(tmp_path: Path) -> None:
    path = tmp_path / f"{'s' * 200}.yaml"
    path.write_text(SMALL)
    assert load(path).name == "s" * 100


@pytest.mark.parametrize("item", [f"h0g{'9' * 5000}", f"h0:{'9' * 5000}", f"h0:0-{'9' * 5000}", f"h{'9' * 5000}"])
def test_a_placement_of_thousands_of_digits_is_refused(item: str, tmp_path: Path) -> None:
    said = refusal(SMALL.replace("gpus: 4", f'placement: ["{item}"]'), tmp_path)
    assert "is no placement" in said or "no host 'h999" in said


def test_a_position_of_thousands_of_digits_is_no_item(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SMALL)
    with pytest.raises(BadInputError, match=r"--set jobs\.999.*expected 0 to 0 or an item's name"):
        load(path, [f"jobs.{'9' * 5000}.gpus=1"])
