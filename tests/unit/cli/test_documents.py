from __future__ import annotations

import re
from pathlib import Path

from testbed.cli.main import VERBS

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def links_of(page: Path) -> list[str]:
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))]


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
