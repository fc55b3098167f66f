"""The policy of docs/reference/managers.md does what the page says, found by its entry point as any package's is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from testbed.api import run_scenario
from testbed.errors import BadInputError

DOCS = Path(__file__).parents[4] / "docs"
EXAMPLE = DOCS / "examples" / "patient" / "patient.py"
SCENARIO = {
    "fabric": {
        "kind": "clos",
        "hosts": 2,
        "gpus_per_host": 4,
        "nics_per_host": 1,
        "tors": 1,
        "aggregations": 1,
        "port_rate": "100Gbps",
        "fabric_rate": "100Gbps",
    },
    "jobs": [
        {"name": "first", "model": "bert", "gpus": 8, "iterations": 10},
        {"name": "large", "model": "bert", "gpus": 8, "iterations": 10, "start": "0.5s"},
        {"name": "small", "model": "bert", "gpus": 2, "iterations": 10, "start": "1s"},
    ],
    "schedulers": ["ecmp"],
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves behind: the module, and its metadata with the entry point."""
    (tmp_path / "patient.py").write_text(EXAMPLE.read_text("utf-8"), "utf-8")
    metadata = tmp_path / "patient-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: patient\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[testbed.policies]\npatient = patient:Patient\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "patient", raising=False)


def ended_in_order(tmp_path: Path, patience: str) -> list[str]:
    path = tmp_path / "own.yaml"
    manager = yaml.safe_load(f"{{policy: {{name: patient, patience_s: {patience}}}}}")
    path.write_text(yaml.safe_dump({**SCENARIO, "manager": manager}), "utf-8")
    (run,) = run_scenario(str(path), engine="flow", out=tmp_path / "runs").summary["runs"]
    submitted = {"first": 0.0, "large": 0.5, "small": 1.0}
    ends = {job["name"]: submitted[job["name"]] + job["jct_s"] for job in run["jobs"]}
    return sorted(ends, key=lambda name: ends[name])


def test_the_page_shows_the_file_which_is_short() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert text in (DOCS / "reference" / "managers.md").read_text("utf-8")
    assert len(text.splitlines()) < 60


@pytest.mark.usefixtures("installed")
def test_small_jobs_go_first_until_a_large_one_has_waited_long(tmp_path: Path) -> None:
    assert ended_in_order(tmp_path, "600") == ["first", "small", "large"]
    assert ended_in_order(tmp_path, "0.1") == ["first", "large", "small"]


@pytest.mark.usefixtures("installed")
def test_a_wrong_option_is_one_line_at_the_manager(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"own.yaml:\d+: option 'patience_s' of patient must be .* not '-1'"):
        ended_in_order(tmp_path, "-1")


def test_without_the_package_its_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="unknown policy 'patient', expected one of gandiva, gang"):
        ended_in_order(tmp_path, "600")
