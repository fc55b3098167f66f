"""A run of microseconds is shown as one, and columns say what they mean when they are pointed at."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario

OpenPage = Callable[..., Any]
SHORT = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
schedulers: [ecmp, crux]
measure: {iterations: 10, warmup: 1}
jobs:
  - {name: a, model: bert, placement: [h0, h2], compute: 20us, communication: 100kB, overlap: 0}
  - {name: b, model: bert, placement: [h1, h3], compute: 20us, communication: 100kB, overlap: 0, start: 50us}
"""
UNEXPLAINED = """() => [...document.querySelectorAll("th:not(.text) button.sort")]
    .filter((head) => !head.title).map((head) => head.textContent)"""


@pytest.fixture(scope="module")
def short_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("short")
    (folder / "short.yaml").write_text(SHORT, "utf-8")
    return run_scenario(str(folder / "short.yaml"), engine="flow", out=folder).directory / "report.html"


def test_no_time_of_a_run_of_microseconds_is_shown_as_nothing(open_page: OpenPage, short_report: Path) -> None:
    opened = open_page(short_report)
    assert opened.complaints == []
    iterations = opened.page.locator("#tables, main").first.inner_text()
    assert re.search(r"\b\d+(\.\d+)?us\b", iterations), "iteration times in microseconds"
    decided = opened.page.locator("#decisions table").first.locator("tbody tr").last.locator("td").first.inner_text()
    assert decided == "50 us"
    assert "0.000 s" not in opened.page.locator("body").inner_text()


def test_the_gpu_under_the_cursor_says_times_that_are_not_nothing(open_page: OpenPage, short_report: Path) -> None:
    page = open_page(short_report).page
    plot = page.locator("#time .u-over").first
    plot.scroll_into_view_if_needed()
    size = plot.bounding_box()
    told = page.locator("#time .told").first
    for share in range(1, 20):
        plot.hover(position={"x": size["width"] * share / 20, "y": size["height"] / 4})
        if told.inner_text():
            break
    assert re.search(r"compute [1-9]\d*(\.\d+)? us", told.inner_text())


def test_columns_of_numbers_say_what_they_mean(open_page: OpenPage, report: Path, managed_report: Path) -> None:
    for path in (report, managed_report):
        found = open_page(path).page.evaluate(UNEXPLAINED)
        assert [title for title in found if title not in ("ecmp", "crux", "threshold")] == []
