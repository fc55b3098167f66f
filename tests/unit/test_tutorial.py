"""The tutorial works: its commands and files, in its order, in an empty directory.

Steps that need root are followed by ``tests/emulation/testbed/test_tutorial.py``. Packages that pip would fetch come
from this environment instead of the network; everything else is as a reader has it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tutorial_steps import PAGES, Command, Done, File, follow, steps

STEPS = [step for page in PAGES for step in steps(page)]
COMMANDS = [step for step in STEPS if isinstance(step, Command)]
WITHOUT_ROOT = [step for step in STEPS if isinstance(step, File) or not step.needs_root]


def test_the_tutorial_works_as_it_is_written(tmp_path: Path) -> None:
    """One test: the steps build on each other, and take a minute."""
    done = follow(WITHOUT_ROOT, tmp_path)
    failed = [f"{each.command.page}: {each.command.line}\n{each.output}" for each in done if each.status != 0]
    assert not failed, "\n".join(failed)
    lacking = {f"{each.command.page}: {each.command.line}": lacks for each in done if (lacks := each.lacks())}
    assert lacking == {}
    assert [each.command for each in done] == [step for step in COMMANDS if not step.needs_root]


def test_the_tutorial_has_commands_of_both_kinds() -> None:
    assert len([step for step in COMMANDS if not step.needs_root]) >= 15
    assert len([step for step in COMMANDS if step.needs_root]) >= 4


def test_every_page_of_the_tutorial_is_followed() -> None:
    pages = set(PAGES[0].parent.glob("*.md")) - {PAGES[0].with_name("index.md")}
    assert pages == set(PAGES)
    listed = re.findall(r"\]\(([a-z-]+)\.md\)", PAGES[0].with_name("index.md").read_text("utf-8"))
    assert listed == [page.stem for page in PAGES]
    assert "```" not in PAGES[0].with_name("index.md").read_text("utf-8")


def test_a_block_that_no_test_could_run_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block in ("```\ntestbed run hello\n```\n", "```sh\ntestbed run hello\n```\n", "```yaml\nseed: 1\n```\n"):
        page.write_text(block, "utf-8")
        with pytest.raises(ValueError, match="neither commands"):
            list(steps(page))


def test_what_a_command_does_not_print_is_found() -> None:
    command = Command("page.md", "testbed run hello", (" crux 85.4",))
    assert Done(command, 0, "crux 85.3\n").lacks() == ["85.4"]
