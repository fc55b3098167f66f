"""The keys of a fabric are the parameters of its generator, for fabrics of other packages, too."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.scenario.fabrics import FABRICS, model_of
from topologies.registry import BUILT_IN

ROOT = Path(__file__).parents[4]
MODULE = '''
from typing import Annotated

from testbed.plugins import Count, Fabric, Rate
from topologies.clos import clos


def star(*, hosts: Annotated[int, Count("number of hosts")], rate: Annotated[float, Rate("a cable")] = 1e9) -> Fabric:
    """Hosts on one switch."""
    if hosts > 64:
        raise ValueError(f"hosts must be at most 64, not {hosts}")
    rates = {"port_rate": rate, "fabric_rate": rate}
    return clos(hosts=hosts, gpus_per_host=1, nics_per_host=1, tors=1, aggregations=1, **rates)
'''
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


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What pip leaves behind: the module, and its metadata with the entry point."""
    (tmp_path / "star.py").write_text(MODULE, "utf-8")
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
    assert validated(installed, "{kind: star, hosts: 4, rate: 10Gbps}") == (0, "")


@pytest.mark.parametrize(
    ("fabric", "line"),
    [
        ("{kind: star, hosts: 4, rate: 10}", "fabric.rate is 10, expected a rate with its unit, such as 200Gbps"),
        ("{kind: star}", "missing key 'hosts' in fabric, expected number of hosts"),
        ("{kind: star, hosts: 65}", "impossible fabric: hosts must be at most 64, not 65"),
        ("{kind: ring}", "unknown kind of fabric 'ring', expected one of clos, clos3, double-sided, star"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(installed: Path, fabric: str, line: str) -> None:
    assert validated(installed, fabric) == (2, f"own.yaml:3: {line}\n")
