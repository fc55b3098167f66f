"""The page of a run in which parts fail: when, and which jobs stood still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario

OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def failing_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    return run_scenario("hpn-failures-single", engine="flow", out=folder).directory / "report.html"


def test_what_failed_is_a_table_and_a_band_over_the_gpus(open_page: OpenPage, failing_report: Path) -> None:
    opened = open_page(failing_report)
    assert opened.complaints == []
    assert "a part named there has failed" in opened.page.locator("#time .legend").first.inner_text()
    text = opened.page.locator("body").inner_text()
    assert "What failed, and which jobs it stopped" in text and "bert 3.0 s, gpt 3.0 s, resnet 3.0 s" in text
    with opened.page.expect_download() as waiting:
        opened.page.get_by_role("button", name="download gpus-crux.svg", exact=True).click()
    drawn = Path(waiting.value.path()).read_text("utf-8")
    assert drawn.count('fill="#808080"') == 3 and ">tor0<" in drawn


def test_without_failures_nothing_is_said_of_them(open_page: OpenPage, report: Path) -> None:
    opened = open_page(report)
    assert "has failed" not in opened.page.locator("#time .legend").first.inner_text()
    assert "What failed" not in opened.page.locator("body").inner_text()
