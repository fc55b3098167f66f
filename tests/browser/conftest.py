"""A headless Chromium, and pages of runs that the flow engine made: no root, seconds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDE = (1280, 900)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="no chromium here: install it, or run make browser"))


@dataclass
class Opened:
    """A page in the browser, and what it did that it should not."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Root may only start Chromium without its sandbox; it opens nothing but files made here.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    """``open_page(path, size, **settings of the context)``: the page, loaded and drawn."""
    contexts = []

    def opened(path: Path, size: tuple[int, int] = WIDE, **settings: Any) -> Opened:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        contexts.append(context)
        context.set_default_timeout(10_000)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-drawn]", timeout=60_000)
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of clos96 under ECMP and Crux: 96 GPUs, five jobs, links that several jobs share."""
    out = tmp_path_factory.mktemp("clos96")
    overrides = ["measure.iterations=4", "measure.warmup=1", "checks=[]"]
    return run_scenario("clos96.yaml", engine="flow", overrides=overrides, out=out).directory / "report.html"


@pytest.fixture(scope="session")
def managed_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose jobs arrive under a cluster manager."""
    return (
        run_scenario("arrivals.yaml", engine="flow", out=tmp_path_factory.mktemp("arrivals")).directory / "report.html"
    )
