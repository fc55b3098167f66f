"""What all tests share: emulation tests are for root, and random tests draw the same examples in every run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings

os.environ.pop("SUDO_UID", None)  # tests under sudo are root's: their commands write to folders of root
# Processes of pytest-xdist get the first one's environment, in which both are set already.
_GIVEN = "DATAPATHS_OF_EMULATION_TESTS" if "PYTEST_XDIST_WORKER" in os.environ else "TESTBED_DATAPATHS"
_DATAPATHS = os.environ.get(_GIVEN) or None
os.environ["DATAPATHS_OF_EMULATION_TESTS"] = _DATAPATHS or ""  # also while tests are collected
os.environ["TESTBED_DATAPATHS"] = "userspace"  # so are choices of a datapath, and no unit test looks at the kernel
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it: tables are as wide as on a pipe, however tests are run
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("emulation"):
            item.add_marker(pytest.mark.skip(reason="builds a real network: needs root"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Emulations take the machine's datapath, or those that the environment allows."""
    os.environ.pop("TESTBED_DATAPATHS", None)
    if not item.get_closest_marker("emulation"):
        os.environ["TESTBED_DATAPATHS"] = "userspace"
    elif _DATAPATHS is not None:
        os.environ["TESTBED_DATAPATHS"] = _DATAPATHS


StartChild = Callable[..., "subprocess.Popen[str]"]


def start_interruptible(command: Sequence[str], **settings: Any) -> subprocess.Popen[str]:
    """Start a child that hears SIGINT, also where whoever started the tests ignores it: nohup, a shell's background.

    What is ignored stays ignored in every child, and Python then installs no handler.
    """

    def hear() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(command, text=True, preexec_fn=hear, **settings)


@pytest.fixture
def start_child() -> StartChild:
    """``start_child(command, **settings of Popen)``: how tests start what they interrupt."""
    return start_interruptible
