"""``python -m tools.screenshots [RUN]``: the pictures of the documents, taken from a real run in a headless Chromium.

RUN is the directory of a run of clos96 under ECMP and Crux, whose packets are then what the pictures show; without it
the flow engine makes one. The comparison is of three seeds, by the flow engine. ``docs/images/sources.json`` notes what
the pictures show and a hash of the page they were taken of: take them again when a test says that the page has changed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
SOURCES: Final = "sources.json"
LARGEST: Final = 250_000
"""Bytes of a picture."""
SCENARIO: Final = "clos96"
SCHEDULERS: Final = ("ecmp", "crux")
SEEDS: Final = (1, 2, 3)
WIDE: Final = (1280, 960)
PHONE: Final = (390, 844)
_PAGE_FILES: Final = (".js", ".css", ".html")


def page_hash() -> str:
    """SHA-256 of what the pages are made of: modules, styles and libraries."""
    report = ROOT / "testbed" / "report"
    files = sorted(path for place in ("page", "vendor") for path in (report / place).rglob("*") if path.is_file())
    total = hashlib.sha256()
    for path in (path for path in files if path.suffix in _PAGE_FILES):
        total.update(f"{path.relative_to(report).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def main() -> int:
    """Take all pictures; status 1 if one is too large."""
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("run", metavar="RUN", nargs="?", type=Path, help="a finished run of clos96 under ECMP and Crux")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="testbed-screenshots-") as scratch, _browser() as browser:
        run, compared = _reports(arguments.run, Path(scratch))
        pictures = dict(_pictures(browser, run / "report.html", compared))
        facts = _facts(run)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (IMAGES / name).write_bytes(picture)
        print(f"{IMAGES / name}: {len(picture)} bytes")
    document = {"page_sha256": page_hash(), **facts, "pictures": sorted(pictures)}
    (IMAGES / SOURCES).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return int(any(len(picture) > LARGEST for picture in pictures.values()))


def _reports(given: Path | None, scratch: Path) -> tuple[Path, Path]:
    """The directory of the run with a new report, and the page that compares seeds."""
    from testbed.api import run_scenario
    from testbed.report import html
    from testbed.report.comparison import page
    from testbed.report.comparison.compared_runs import collect
    from testbed.results.run_directory import RunDirectory

    seeds = [
        run_scenario(SCENARIO, engine="flow", schedulers=SCHEDULERS, overrides=["checks=[]"], seed=seed, out=scratch)
        for seed in SEEDS
    ]
    run = seeds[0].directory
    if given is not None:
        run = scratch / "given"
        shutil.copytree(given, run)
        html.build(RunDirectory.open(run))
    compared = page.write(collect([each.directory for each in seeds]), scratch / "compared", "comparison")
    return run, compared


def _facts(run: Path) -> dict[str, Any]:
    from testbed.results.run_directory import RunDirectory

    summary = RunDirectory.open(run).read_summary()
    utilization = {each["scheduler"]: round(each["gpu_utilization"], 3) for each in summary["runs"]}
    return {"scenario": summary["scenario"], "engine": summary["engine"], "gpu_utilization": utilization}


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("screenshots need Chromium: apt-get install chromium")
    # Root may only start Chromium without its sandbox; it opens nothing but the files made here.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


def _pictures(browser: Any, report: Path, compared: Path) -> Iterator[tuple[str, bytes]]:
    yield "report-light.png", _small(_opened(browser, report, WIDE, "light").screenshot())
    yield "report-dark.png", _small(_opened(browser, report, WIDE, "dark", "#fabric").screenshot())
    yield "report-phone.png", _small(_opened(browser, report, PHONE, "light", "#fabric").screenshot())
    yield "compare.png", _small(_opened(browser, compared, WIDE, "light").screenshot())
    yield "clos96-crux.png", _small(_side_by_side(browser, report))


def _opened(browser: Any, path: Path, size: tuple[int, int], scheme: str, place: str = "") -> Any:
    """The page in ``path``, drawn, at the element ``place``."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    if place:
        page.locator(place).evaluate("element => element.scrollIntoView()")
    page.wait_for_timeout(500)
    return page


def _side_by_side(browser: Any, report: Path) -> bytes:
    """The fabric under each scheduler, coloured by its average load, with the scheduler's name and utilisation."""
    page = _opened(browser, report, (1000, 900), "light", "#fabric")
    page.locator("#fabric").get_by_label("link", exact=True).select_option(label="none")
    utilization = _facts(report.parent)["gpu_utilization"]
    parts = []
    for scheduler in SCHEDULERS:
        page.locator("#fabric select").first.select_option(label=scheduler)
        page.get_by_label("average of the run").check()
        page.wait_for_timeout(500)
        picture = base64.b64encode(page.locator(".fabric-picture").screenshot()).decode()
        words = f"{scheduler}: {100 * utilization[scheduler]:.0f} % of the GPU time is compute"
        parts.append(f'<figure><figcaption>{words}</figcaption><img src="data:image/png;base64,{picture}"></figure>')
    both = browser.new_page(viewport={"width": 1280, "height": 600})
    style = "body{margin:0;padding:8px;display:flex;gap:24px;font:600 18px sans-serif}"
    style += "figure{margin:0;flex:1}img{width:100%}"
    both.set_content("\n".join(["<!doctype html>", f"<style>{style}</style>", *parts]))
    both.wait_for_timeout(300)
    picture = both.locator("body").screenshot()
    assert isinstance(picture, bytes)
    return picture


def _small(picture: bytes) -> bytes:
    """The same with a palette of 256 colours: a third of the size, and no difference that one sees."""
    from PIL import Image

    target = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(256).save(target, "PNG", optimize=True)
    return target.getvalue()


if __name__ == "__main__":
    raise SystemExit(main())
