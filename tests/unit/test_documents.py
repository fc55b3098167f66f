from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from testbed.cli.main import VERBS, build_parser, main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def links_of(page: Path) -> list[str]:
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))]


def blocks_of(page: Path, language: str) -> list[str]:
    """The fenced blocks of ``page`` in ``language``."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [text for found, text in blocks if found == language]


SCENARIOS = [(page.name, text) for page in PAGES for text in blocks_of(page, "yaml") if "fabric:" in text]
COMMANDS = [
    (page.name, line.split("  ")[0])  # what a line does stands behind two spaces
    for page in PAGES
    for text in blocks_of(page, "")
    for line in text.splitlines()
    if re.match(r"(sudo )?(python -m )?testbed [a-z-]", line)
]


@pytest.mark.parametrize(("page", "text"), SCENARIOS, ids=[page for page, _ in SCENARIOS])
def test_scenarios_in_documents_are_right(page: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.yaml"
    path.write_text(text, "utf-8")
    assert main(["plan", str(path)]) == 0


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[line for _, line in COMMANDS])
def test_commands_in_documents_are_what_the_command_line_takes(page: str, line: str) -> None:
    words = [word.strip("[]") if word.startswith("[") else word for word in shlex.split(line)]
    arguments = words[words.index("testbed") + 1 :]
    if arguments != ["--version"]:
        assert build_parser(arguments).parse_args(arguments).verb == arguments[0]


def test_documents_hold_scenarios_and_commands_to_try() -> None:
    assert len(SCENARIOS) >= 2 and len(COMMANDS) >= 5


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in links_of(page)
        if link and "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


def test_every_page_is_reached_from_the_readme_or_a_page_it_names() -> None:
    reached = {page.name for link in PAGES for target in links_of(link) if (page := Path(target)).suffix == ".md"}
    assert {page.name for page in PAGES if page.name != "README.md"} - reached == set()


def test_the_readme_lists_exactly_the_verbs() -> None:
    rows = re.findall(r"^\| `([a-z]+)(?: [A-Z.]+)?`", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert rows == list(VERBS)


def test_every_verb_has_its_place_in_the_page_of_the_command_line() -> None:
    headings = " ".join(re.findall(r"^## (.*)$", (ROOT / "docs" / "command-line.md").read_text("utf-8"), re.MULTILINE))
    assert set(VERBS) <= set(re.findall(r"[a-z]+", headings))
