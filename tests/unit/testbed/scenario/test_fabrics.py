"""The keys of a fabric are the parameters of its generator, for fabrics of other packages, too."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.scenario import build_fabric, load
from testbed.scenario.network.fabrics import FABRICS, model_of
from tests.unit.topologies.formats.simai_files import topology
from topologies.registry import BUILT_IN

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "docs" / "examples" / "star" / "star.py"
SCENARIO = """
name: own
fabric: {fabric}
jobs: [{{name: a, model: bert, gpus: 4}}]
schedulers: [ecmp]
"""


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_fabric_takes_what_its_generator_takes(kind: str) -> None:
    parameters = inspect.signature(BUILT_IN[kind]).parameters
    assert list(FABRICS[kind].model_fields) == ["kind", *parameters]
    assert all(field.description for name, field in FABRICS[kind].model_fields.items() if name != "kind")


def test_a_model_is_called_like_its_kind() -> None:
    assert model_of("double-sided", BUILT_IN["double-sided"]).__name__ == "DoubleSidedSpec"
    assert model_of("dcn+", BUILT_IN["dcn+"]).__name__ == "DcnPlusSpec"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What pip leaves behind: the module, and its metadata with the entry point."""
    shutil.copy(EXAMPLE, tmp_path)
    metadata = tmp_path / "star-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: star\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[testbed.fabrics]\nstar = star:star\n", "utf-8")
    return tmp_path


def validated(folder: Path, fabric: str) -> tuple[int, str]:
    (folder / "own.yaml").write_text(SCENARIO.format(fabric=fabric), "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-m", "testbed", "validate", "own.yaml"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_fabric_of_another_package_is_a_kind_like_any(installed: Path) -> None:
    assert validated(installed, "{kind: star, hosts: 4, port_rate: 10Gbps}") == (0, "")


def test_the_page_shows_the_file_which_is_short() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert text in (ROOT / "docs" / "reference" / "scenario.md").read_text("utf-8")
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize(
    ("fabric", "line"),
    [
        (
            "{kind: star, hosts: 4, port_rate: 10}",
            "fabric.port_rate is 10, expected a rate with its unit, such as 200Gbps",
        ),
        ("{kind: star}", "missing key 'hosts' in fabric, expected number of hosts"),
        ("{kind: star, hosts: 65537}", "impossible fabric: hosts must be at most 65536, not 65537"),
        ("{kind: ring}", f"unknown kind of fabric 'ring', expected one of {', '.join(BUILT_IN)}, star"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(installed: Path, fabric: str, line: str) -> None:
    assert validated(installed, fabric) == (2, f"own.yaml:3: {line}\n")


def with_topology(folder: Path, text: str) -> Path:
    """A scenario beside a topology of SimAI."""
    (folder / "topology").write_text(text, "utf-8")
    path = folder / "own.yaml"
    path.write_text(SCENARIO.format(fabric="{simai: topology}"), "utf-8")
    return path


def test_a_fabric_from_a_file_is_found_beside_the_scenario_and_found_again(tmp_path: Path) -> None:
    loaded = load(with_topology(tmp_path, topology(2, 4, 1, rails=True)))
    assert len(build_fabric(loaded).gpus) == 8
    again = tmp_path / "elsewhere" / "again.yaml"
    again.parent.mkdir()
    again.write_text(loaded.resolved_yaml(), "utf-8")
    assert load(again) == loaded


def test_a_damaged_file_names_the_line_of_the_scenario_and_its_own(tmp_path: Path) -> None:
    path = with_topology(tmp_path, "8 4\n")
    header = "expected nodes, GPUs per server, NVSwitches, switches, links and GPU type"
    with pytest.raises(BadInputError) as refused:
        load(path)
    file = tmp_path / "topology"
    assert str(refused.value) == f"{path}:3: impossible fabric: simai {file}:1: the header is '8 4', {header}"


FICKLE = """

calls = []


def fickle(*, hosts: Annotated[int, Count("number of hosts")]) -> Fabric:
    calls.append(hosts)
    return star(hosts=hosts if len(calls) == 1 else 65537)
"""


def test_a_generator_that_refuses_at_its_second_call_what_it_took_before_is_one_line(installed: Path) -> None:
    module = installed / EXAMPLE.name
    module.write_text(module.read_text("utf-8") + FICKLE, "utf-8")
    (installed / "star-1.0.dist-info" / "entry_points.txt").write_text(
        "[testbed.fabrics]\nstar = star:fickle\n", "utf-8"
    )
    status, said = validated(installed, "{kind: star, hosts: 4}")
    assert status != 0 and said.count("\n") == 1 and "please report" not in said
    assert "fabric star returned another fabric than when the scenario was checked: hosts must be at most" in said


@pytest.mark.parametrize("option", ["--dot", "--node-link", "--containerlab"])
def test_a_plan_prints_the_fabric_for_other_tools(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "hello", option]) == 0
    assert "tor1" in capsys.readouterr().out


def test_what_a_plan_prints_as_node_link_is_the_fabric_of_another_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "hello", "--node-link"]) == 0
    (tmp_path / "graph.json").write_text(capsys.readouterr().out, "utf-8")
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO.format(fabric="{node_link: graph.json}"), "utf-8")
    assert build_fabric(load(path)).links == build_fabric(load("hello")).links
