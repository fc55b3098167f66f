"""What computes starts where nothing that touches the kernel can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BLOCKED = ("mininet", "ryu", "os_ken", "eventlet", "ovs", "scapy", "fcntl")
"""Each import of one of these raises, as where it is not installed."""

BLOCK = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
VERBS = """
import pkgutil, testbed.cli
for module in pkgutil.walk_packages(testbed.cli.__path__, "testbed.cli."):
    __import__(module.name)
"""


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCK + program], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "program",
    [
        "import testbed.engines.flow.engine",
        "import testbed.engines.replay.replay",
        "import testbed.cli.main",
        VERBS,
        "import testbed.api, testbed.pytest_plugin",
    ],
)
def test_it_is_imported_without_mininet_and_what_reaches_the_kernel(program: str) -> None:
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_an_emulation_cannot_be_imported_there() -> None:
    done = python("import testbed.engines.emulation.cluster")
    assert "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr
