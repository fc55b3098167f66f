from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from testbed.cli.main import VERBS, build_parser, main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def links_of(page: Path) -> list[str]:
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))]


def blocks_of(page: Path, language: str) -> list[str]:
    """The fenced blocks of ``page`` in ``language``."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [text for found, text in blocks if found == language]


# Those of the recipes need what the recipes add: test_recipes.py.
SCENARIOS = [
    (page.name, text)
    for page in PAGES
    for text in blocks_of(page, "yaml")
    if "fabric:" in text and page.name != "extend.md"
]
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
    assert SCENARIOS and len(COMMANDS) >= 30


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in links_of(page)
        if link and "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, unread = set(), {ROOT / "README.md"}
    while unread:
        page = unread.pop()
        reached.add(page)
        targets = {(page.parent / link).resolve() for link in links_of(page) if link and "://" not in link}
        unread |= {target for target in targets if target.suffix == ".md" and target.exists()} - reached
    assert {str(page.relative_to(ROOT)) for page in set(PAGES) - reached} == set()


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    navigation = re.findall(r"([a-z/-]+\.md)", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2])
    assert sorted(navigation) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])


def test_the_page_of_the_command_line_lists_exactly_the_verbs() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    table = page.partition("\nA SCENARIO is")[0]
    assert re.findall(r"^\| `([a-z]+)(?: [A-Z.\[\]]+)?`", table, re.MULTILINE) == list(VERBS)


def test_every_verb_has_its_place_in_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    headings = " ".join(re.findall(r"^## (.*)$", page, re.MULTILINE))
    assert set(VERBS) <= set(re.findall(r"[a-z]+", headings))
