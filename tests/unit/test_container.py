"""The recipe of the container image: what can be checked of it without a container engine."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "Containerfile"
DEVCONTAINER = ROOT / ".devcontainer" / "devcontainer.json"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the recipe, lines that go on joined: name, rest."""
    lines = [line for line in RECIPE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined)]


def commands() -> list[list[str]]:
    """Every command of every RUN, as words."""
    runs = [rest for name, rest in instructions() if name == "RUN"]
    return [shlex.split(command) for run in runs for command in run.split("&&")]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def test_it_has_only_instructions_that_there_are_and_begins_with_a_release_of_debian() -> None:
    names = [name for name, _ in instructions()]
    assert set(names) <= {"FROM", "RUN", "WORKDIR", "COPY", "CMD"}
    assert instructions()[0] == ("FROM", "debian:12") and names.count("FROM") == 1


def test_what_it_copies_and_calls_is_in_the_checkout() -> None:
    copied = [shlex.split(rest)[:-1] for name, rest in instructions() if name == "COPY"]
    assert copied and all((ROOT / source).exists() for sources in copied for source in sources)
    called = [words[0] for words in commands() if "/" in words[0]]
    assert called == ["tools/setup.sh"] and os.access(ROOT / called[0], os.X_OK)


def test_packages_are_installed_without_questions_and_leave_no_lists() -> None:
    for words in commands():
        if words[:2] == ["apt-get", "install"]:
            assert {"--yes", "--no-install-recommends"} <= set(words)
    for run in (rest for name, rest in instructions() if name == "RUN"):
        assert "apt-get update" in run and "rm -rf /var/lib/apt/lists/*" in run


def test_the_context_leaves_out_nothing_that_git_knows() -> None:
    """Set-up needs the checkout; environments, runs and caches of this machine stay outside the image."""
    left_out = [line.strip("*/") for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()]
    known = ("setup.cfg", "pyproject.toml", "Makefile", "README.md", "tools", "constraints", "testbed", "tests", "docs")
    assert not set(left_out) & set(known) and ".venv" in left_out


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md"])
def test_it_runs_the_command_of_the_documents(page: str) -> None:
    (command,) = [json.loads(rest) for name, rest in instructions() if name == "CMD"]
    assert command == ["make", "run"] and "run" in make_targets()
    assert "make run" in (ROOT / page).read_text("utf-8")


def test_the_development_container_is_the_same_image_with_the_rights_that_packets_need() -> None:
    found = json.loads(DEVCONTAINER.read_text("utf-8"))
    assert (DEVCONTAINER.parent / found["build"]["dockerfile"]).resolve() == RECIPE
    assert (DEVCONTAINER.parent / found["build"]["context"]).resolve() == ROOT
    assert found["runArgs"] == ["--privileged"] and found["remoteUser"] == "root"
    tool, target = found["postCreateCommand"].split()
    assert tool == "make" and target in make_targets()


def test_the_documents_say_why_it_is_privileged_and_that_it_was_not_built() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
    assert "--privileged" in page and "network namespaces" in page and "has not been built" in page
