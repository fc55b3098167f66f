"""The report of a run: how long ``testbed report`` takes, how large the file is, and how fast the page answers.

Runs are those of the directories given, or ``clos96`` and ``clos1024``, the largest bundled fabric, by the flow engine.
In headless Chromium: how long the page takes to be drawn, and the median time from a move of the slider to the end of
the frame that shows it. Without Chromium that target is not judged.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.common import Line, Outcome, parser_of, report, say
from testbed.api import run_scenario
from testbed.errors import RunFailedError, TestbedError
from testbed.results.run_directory import RunDirectory

TITLE: Final = "The report of a run: time, size, and how fast the page answers"
MOST_S: Final = 5.0
MOST_BYTES: Final = 10_000_000
MOST_MS: Final = 100.0
MOVES: Final = 21
BUNDLED: Final = ("clos96", "clos1024")
CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_MOVES: Final = """async (count) => {
  const slider = document.getElementById('time-slider');
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  for (let move = 0; move < count; move++) {
    const next = (Number(slider.value) + 1) % (Number(slider.max) + 1);
    await frame();
    const begin = performance.now();
    slider.value = next;
    slider.dispatchEvent(new Event('input'));
    await frame();
    await frame();
    times.push(performance.now() - begin);
  }
  return times;
}"""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the browser took: seconds until the page was drawn, and milliseconds of each move of the slider."""

    drawn_s: float
    moves_ms: tuple[float, ...]


def measure(directories: Sequence[Path]) -> list[Line]:
    """Lines of every run; those of the bundled scenarios are made in a temporary directory."""
    if directories:
        return [line for directory in directories for line in _of(directory)]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        lines: list[Line] = []
        for name in BUNDLED:
            say(f"{name}: running in the flow engine")
            lines += _of(run_scenario(name, engine="flow", out=folder).directory)
        return lines


def _of(directory: Path) -> list[Line]:
    about = RunDirectory.open(directory).read_summary()
    name = f"{about['scenario']}, {about['engine']}, {len(about['runs'])} schedulers"
    took, page = made(directory)
    size = page.stat().st_size
    lines = [
        Line({"run": name, "what": "testbed report", "value": f"{took:.2f} s"}, "< 5 s", _judged(took < MOST_S)),
        Line({"run": name, "what": "size", "value": f"{size / 1e6:.2f} MB"}, "< 10 MB", _judged(size < MOST_BYTES)),
    ]
    found = answers(page)
    if found is None:
        note = "no chromium here"
        return [*lines, Line({"run": name, "what": "slider move", "value": "-"}, "< 100 ms", "inconclusive", note)]
    median = statistics.median(found.moves_ms)
    shown = f"{median:.0f} ms (at most {max(found.moves_ms):.0f})"
    return [
        *lines,
        Line({"run": name, "what": "page drawn", "value": f"{found.drawn_s:.2f} s"}),
        Line({"run": name, "what": "slider move", "value": shown}, "< 100 ms", _judged(median < MOST_MS)),
    ]


def _judged(holds: bool) -> Outcome:
    return "pass" if holds else "missed"


def made(directory: Path) -> tuple[float, Path]:
    """Seconds that ``testbed report`` takes as a command, and the file that it wrote."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "testbed", "report", str(directory)], capture_output=True, text=True)
    took = time.perf_counter() - begin
    if done.returncode != 0:
        raise RunFailedError(done.stderr.strip() or f"testbed report {directory} ended with status {done.returncode}")
    return took, directory / "report.html"


def answers(page: Path) -> Answers | None:
    """How fast ``page`` is in headless Chromium; None where there is none."""
    if CHROMIUM is None:
        return None
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        opened: Any = browser.new_page(viewport={"width": 1280, "height": 900})
        begin = time.perf_counter()
        opened.goto(page.resolve().as_uri())
        opened.wait_for_selector("html[data-drawn]", timeout=120_000)
        drawn_s = time.perf_counter() - begin
        moves = opened.evaluate(_MOVES, MOVES)
        browser.close()
    return Answers(drawn_s, tuple(moves))


def main() -> int:
    """Parse the command line, measure, show, and return the exit status."""
    parser = parser_of(TITLE)
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="*", help="directory of a finished run")
    given = parser.parse_args()
    try:
        lines = measure(given.directory)
    except TestbedError as error:
        say(str(error))
        return error.exit_status
    return report(TITLE, lines, as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
