"""Keys of before: each still says the same, after one line that names it and its place."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.errors import BadInputError
from testbed.scenario import Scenario, json_schema, load, old_keys
from testbed.sweep.checking import points_of
from testbed.sweep.loading import load as load_sweep

TEXT = """fabric: {{kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
  port_rate: 100Gbps, fabric_rate: 100Gbps{fabric}}}
jobs:
  - {{name: one, model: bert, gpus: 4}}
  - {{name: two, model: bert{job}}}
{rest}
schedulers: [ecmp]
"""
"""Line 2 is the fabric's, line 5 the second job's, line 6 that of all else."""

ENDS = "the old name will stop working in the next release"


class Case(NamedTuple):
    """An old key: where ``TEXT`` has it and how, its line, what is said; an override that needs it and its value."""

    part: str
    old: str
    new: str
    line: int
    said: str
    dotted: str
    value: str


CASES = {
    ("place",): Case(
        "rest",
        "place: spread",
        "placement_policy: spread",
        6,
        "'place' is now 'placement_policy'",
        "place",
        "first-free",
    ),
    ("link_failures",): Case(
        "rest",
        "link_failures: [{link: tor0->agg1, at: 1s}]",
        "failures: [{link: tor0->agg1, at: 1s}]",
        6,
        "'link_failures' is now 'failures'",
        "link_failures.0.at",
        "2s",
    ),
    ("fabric", "inside"): Case(
        "fabric",
        ", inside: emulated",
        ", pcie_queues: emulated",
        2,
        "'inside' is now 'pcie_queues'",
        "fabric.inside",
        "ideal",
    ),
    ("measure", "limit"): Case(
        "rest",
        "measure: {limit: 9s}",
        "measure: {time_limit: 9s}",
        6,
        "'limit' is now 'time_limit'",
        "measure.limit",
        "8s",
    ),
    ("manager", "fates"): Case(
        "rest",
        "manager: {name: philly, fates: {retries: 2}}",
        "manager: {name: philly, job_failures: {retries: 2}}",
        6,
        "'fates' is now 'job_failures'",
        "manager.fates.retries",
        "3",
    ),
    ("manager", "job_failures", "end_at"): Case(
        "rest",
        "manager: {job_failures: {end_at: 0.5}}",
        "manager: {job_failures: {early_stop_at: 0.5}}",
        6,
        "'end_at' is now 'early_stop_at'",
        "manager.job_failures.end_at",
        "0.6",
    ),
    ("jobs", "*", "least_gpus"): Case(
        "job",
        ", gpus: 4, least_gpus: 2",
        ", gpus: 4, min_gpus: 2",
        5,
        "'least_gpus' is now 'min_gpus'",
        "jobs.two.least_gpus",
        "3",
    ),
    ("jobs", "*", "most_gpus"): Case(
        "job",
        ", gpus: 4, most_gpus: 8",
        ", gpus: 4, max_gpus: 8",
        5,
        "'most_gpus' is now 'max_gpus'",
        "jobs.1.most_gpus",
        "6",
    ),
    ("jobs", "*", "packed_with"): Case(
        "job", ", packed_with: one", ", share_gpus_with: one", 5, "'packed_with' is now 'share_gpus_with'", "", ""
    ),
}
"""By the place of the old key."""


@pytest.fixture(autouse=True)
def _nothing_told_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old_keys._tell.cache_clear()
    monkeypatch.chdir(tmp_path)


def text_of(case: Case, what: str) -> str:
    job = "" if case.part == "job" else ", gpus: 4"
    elastic = "GPUS" in case.said.upper() and "share" not in case.new
    parts = {"fabric": "", "job": job, "rest": "manager: fifo" if elastic else ""}
    return TEXT.format(**{**parts, case.part: what})


def loaded(text: str, *overrides: str) -> Scenario:
    Path("s.yaml").write_text(text, encoding="utf-8")
    return load("s.yaml", overrides, models=["bert"], schedulers=["ecmp"])


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_every_old_key_has_a_case() -> None:
    assert CASES.keys() == old_keys.RENAMED.keys()


@pytest.mark.parametrize("case", CASES.values(), ids=[".".join(place) for place in CASES])
def test_an_old_key_says_what_the_new_one_says(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    new = loaded(text_of(case, case.new))
    assert told(capsys) == []
    old = loaded(text_of(case, case.old))
    assert old == new and old.resolved_yaml() == new.resolved_yaml()
    assert told(capsys) == [f"s.yaml:{case.line}: {case.said}; {ENDS}"]
    loaded(text_of(case, case.old))
    assert told(capsys) == [], "once is enough, however often the file is read"


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.dotted], ids=lambda case: case.dotted)
def test_an_old_key_of_an_override_changes_the_new_one(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    dotted = ".".join(old_keys.today(case.dotted.split(".")))
    new = loaded(text_of(case, case.new), f"{dotted}={case.value}")
    assert new != loaded(text_of(case, case.new)) and told(capsys) == []
    for text in (text_of(case, case.new), text_of(case, case.old)):
        assert loaded(text, f"{case.dotted}={case.value}") == new
    given = f"--set {case.dotted}={case.value}: "
    assert [line for line in told(capsys) if line.startswith("--set")] == [f"{given}{case.said}; {ENDS}"]


def test_old_keys_below_an_override_are_renamed_too(capsys: pytest.CaptureFixture[str]) -> None:
    override = "manager={name: philly, fates: {end_at: 0.5}}"
    scenario = loaded(text_of(CASES["place",], ""), override)
    assert scenario.manager is not None and scenario.manager.job_failures is not None
    assert scenario.manager.job_failures.early_stop_at == 0.5
    assert told(capsys) == [
        f"--set {override}: 'fates' is now 'job_failures'; {ENDS}",
        f"--set {override}: 'end_at' is now 'early_stop_at'; {ENDS}",
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=[".".join(place) for place in CASES])
def test_both_names_at_once_are_refused_with_the_line_of_the_old_one(case: Case) -> None:
    old, new = case.said.replace("'", "").split(" is now ")
    both = case.old.replace(f"{old}:", f"{new}: 1, {old}:")
    if case.part == "rest" and not case.old.startswith(("measure", "manager")):
        both = f"{new}: 1\n{case.old}"
    with pytest.raises(BadInputError) as error:
        loaded(text_of(case, both))
    line = case.line + both.count("\n")
    assert str(error.value) == f"s.yaml:{line}: {case.said}, and both are given, expected only {new}"


def test_an_error_in_an_old_key_has_the_line_it_was_written_on() -> None:
    with pytest.raises(BadInputError, match=r"^s\.yaml:6: measure\.time_limit is '0s', expected more than 0$"):
        loaded(text_of(CASES["measure", "limit"], "measure: {limit: 0s}"))
    with pytest.raises(BadInputError, match=r"^--set measure\.limit=0s: measure\.time_limit is '0s', expected"):
        loaded(text_of(CASES["place",], ""), "measure.limit=0s")


SWEEP = """scenario: s.yaml
engine: flow
set:
  measure.{limit}: [8s, 9s]
  manager:
    - fifo
    - {{name: philly, {failures}: {{{stop}: 0.5}}}}
"""


def test_a_sweep_with_old_keys_has_the_same_points(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text(text_of(CASES["measure", "limit"], "measure: {limit: 7s}"), encoding="utf-8")
    Path("old.yaml").write_text(SWEEP.format(limit="limit", failures="fates", stop="end_at"), encoding="utf-8")
    new = SWEEP.format(limit="time_limit", failures="job_failures", stop="early_stop_at")
    Path("new.yaml").write_text(new, encoding="utf-8")
    found = points_of(load_sweep("old.yaml"))
    assert told(capsys) == [
        f"old.yaml:4: 'limit' is now 'time_limit'; {ENDS}",
        f"old.yaml:7: 'fates' is now 'job_failures'; {ENDS}",
        f"old.yaml:7: 'end_at' is now 'early_stop_at'; {ENDS}",
        f"s.yaml:6: 'limit' is now 'time_limit'; {ENDS}",
    ]
    assert points_of(load_sweep("new.yaml")) == found and len(found) == 4


def test_a_sweep_over_both_names_is_refused() -> None:
    Path("both.yaml").write_text("scenario: s.yaml\nset:\n  measure.time_limit: [1s]\n  measure.limit: [2s]\n")
    with pytest.raises(BadInputError) as error:
        load_sweep("both.yaml")
    said = "'limit' is now 'time_limit', and both are given, expected only measure.time_limit"
    assert str(error.value) == f"both.yaml:4: {said}"


def test_the_schema_has_the_new_keys_only() -> None:
    text = str(json_schema())
    assert all(f"'{new}': {{" in text and f"'{old[-1]}': {{" not in text for old, new in old_keys.RENAMED.items())
