"""The steps of the tutorial that need root, on real packets.

Set-up fetches packages for minutes and is what continuous integration begins with; here it finds its work done, by the
environment of these tests.
"""

from __future__ import annotations

import os
import sys

import pytest
from tutorial_steps import PAGES, Command, Done, File, follow, steps

pytestmark = pytest.mark.emulation

STEPS = [step for page in PAGES for step in steps(page)]
NOT_BELIEVABLE = 4
SET_UP = """
/usr/bin/python3 -m venv --system-site-packages testbed/.venv
testbed/.venv/bin/python -m pip install --quiet --editable testbed
sed '$d' testbed/tools/setup.sh >functions.sh
FUNCTIONS=$PWD/functions.sh sh -c '. "$FUNCTIONS"; wanted' "$PWD/testbed/tools/setup.sh" >stamp
mv stamp testbed/.venv/testbed-setup
"""


def needed(step: Command | File) -> bool:
    """Whether a step is one with root, or what those build on: the clone and the files."""
    return isinstance(step, File) or step.needs_root or step.line.split()[0] in ("git", "mkdir")


def set_up(command: Command) -> str:
    return SET_UP if command.line.startswith("git clone") else ""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[Done]:
    return follow([step for step in STEPS if needed(step)], tmp_path_factory.mktemp("tutorial"), after=set_up)


@pytest.mark.skipif(os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"), reason="not set up")
def test_every_command_with_root_ends_well(done: list[Done]) -> None:
    ran = [each for each in done if each.command.needs_root]
    assert [each.command for each in ran] == [step for step in STEPS if isinstance(step, Command) and step.needs_root]
    for each in ran:
        disturbed = " run " in each.command.line and each.status == NOT_BELIEVABLE  # a busy machine
        assert each.status == 0 or disturbed, f"{each.command.line}\n{each.output}"
        assert each.lacks() == []


def test_both_runs_leave_a_directory(done: list[Done], tmp_path_factory: pytest.TempPathFactory) -> None:
    runs = [each.output for each in done if " run " in each.command.line]
    assert len(runs) == 2 and all("files: runs/" in output for output in runs)
