"""The keys of a fabric are the parameters of its generator, for fabrics of other packages, too."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.scenario.fabrics import FABRICS, model_of
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
