"""The comparison of runs, the page of a sweep and the index of runs in a real browser."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario
from testbed.report.comparison import page as comparison_page
from testbed.report.comparison.compared_runs import collect

OpenPage = Callable[..., Any]
PHONE = (390, 844)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs of two seeds and two values of a parameter, with its index."""
    out = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        for overlap in (0.0, 0.9):
            run_scenario("hello", engine="flow", seed=seed, overrides=[f"jobs.big.overlap={overlap}"], out=out)
    return out


@pytest.fixture(scope="module")
def comparison(runs: Path) -> Path:
    """The page that compares them."""
    directories = sorted(path.parent for path in runs.glob("*/summary.json"))
    return comparison_page.write(collect(directories), runs / "compared", "comparison")


def saved(page: Any, name: str) -> str:
    """The text of the file that the button downloads."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"download {name}").first.click()
    return Path(download.value.path()).read_text("utf-8")


@pytest.mark.parametrize("size", [(1280, 900), PHONE])
def test_the_pages_load_without_a_complaint_or_a_request_and_fit(
    open_page: OpenPage, runs: Path, comparison: Path, size: tuple[int, int]
) -> None:
    for path in (comparison, runs / "index.html"):
        opened = open_page(path, size)
        assert (opened.complaints, opened.requests) == ([], [path.as_uri()])
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert "[object" not in opened.page.locator("body").inner_text()


def test_a_heat_map_shows_the_parameter_and_follows_the_choices(open_page: OpenPage, comparison: Path) -> None:
    page = open_page(comparison).page
    part = page.locator("#parameters")
    assert part.locator("th.heat-head").all_inner_texts() == ["0.0", "0.9", "ecmp", "crux"]
    before = part.locator("td.heat").all_inner_texts()
    colors = part.locator("td.heat").evaluate_all("cells => cells.map((cell) => cell.style.backgroundColor)")
    assert len(before) == 4 and len(set(colors)) > 1
    part.get_by_label("show").select_option(label="mean JCT, s")
    assert part.locator("td.heat").all_inner_texts() != before
    part.get_by_label("across").select_option(label="scheduler")
    assert part.locator("th.heat-head").all_inner_texts() == ["ecmp", "crux", "0.0", "0.9"]


def test_intervals_have_a_row_per_group_and_a_value_to_hover(open_page: OpenPage, comparison: Path) -> None:
    page = open_page(comparison).page
    titles = page.locator("#seeds svg title").all_text_contents()
    assert any("95 % confidence interval" in title and "seed 1" in title and "seed 2" in title for title in titles)
    rows = page.locator("#seeds tbody tr")
    assert rows.count() == 4
    page.locator("#seeds").get_by_label("show").select_option(label="gain over the baseline, points")
    assert page.get_by_role("heading", name="gain over the baseline by seed").is_visible()


def test_what_is_drawn_can_be_taken_away(open_page: OpenPage, comparison: Path) -> None:
    page = open_page(comparison).page
    rows = list(csv.reader(io.StringIO(saved(page, "seeds-gpu_utilization.csv"))))
    assert len(rows) == 1 + 8
    for name in ("seeds-gpu_utilization.svg", "heat-map-gpu_utilization.svg", "iteration-times-big.svg"):
        assert ET.fromstring(saved(page, name)).tag.endswith("svg")


def test_distributions_follow_the_chosen_job(open_page: OpenPage, comparison: Path) -> None:
    page = open_page(comparison).page
    part = page.locator("#iteration-times")
    part.get_by_label("job").select_option(label="small")
    assert part.get_by_role("heading", name="Iteration times: small").is_visible()
    assert part.locator("svg rect").count() == 8


def test_the_table_of_runs_sorts_and_leads_to_their_reports(open_page: OpenPage, comparison: Path) -> None:
    page = open_page(comparison).page
    table = page.locator("#runs")
    table.get_by_role("button", name="GPU utilisation, %").click()
    cells = [float(row.split("\t")[6]) for row in table.locator("tbody tr").all_inner_texts()]
    assert cells == sorted(cells, reverse=True)
    table.locator("tbody a").first.click()
    page.wait_for_selector("html[data-drawn]")
    assert page.locator("h1").inner_text().startswith("hello")


def test_the_index_is_searched_by_keyboard(open_page: OpenPage, runs: Path) -> None:
    page = open_page(runs / "index.html").page
    rows = page.locator("#runs tbody tr")
    assert rows.count() == 4
    page.get_by_label("search in runs").focus()
    page.keyboard.type("no such run")
    assert rows.count() == 0
    page.keyboard.press("Control+A")
    page.keyboard.type("HELLO")
    assert rows.count() == 4
