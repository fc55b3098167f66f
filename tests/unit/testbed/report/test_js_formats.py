"""Differences on the page agree with the shares beside them, as in a terminal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import testbed.report.page

FORMATS = Path(testbed.report.page.__file__).parent / "js" / "format.js"
TRIES = """
import { fixedText, percentText, pointsBetween, signedText } from "FORMATS";
const number = (text) => Number(text.replace("\\u2212", "-").replace(" %", ""));
let state = 1;
const draw = () => (state = (48271 * state) % 2147483647) / 2147483647;
for (let i = 0; i < 20000; i += 1) {
  const before = draw();
  const after = before + 0.01 * (draw() - 0.5);
  for (const digits of [0, 1]) {
    const points = pointsBetween(before, after, digits);
    const wanted = number(percentText(after, digits)) - number(percentText(before, digits));
    if (Math.abs(number(points) - wanted) > 1e-9) throw new Error(`${before} ${after} ${points}`);
    for (const text of [points, signedText(after - before, digits), fixedText(after - before, digits)]) {
      if (number(text) === 0 && !/^0/.test(text)) throw new Error(text);
    }
  }
}
"""


TIMES = """
import { millisecondsCell, secondsCell, secondsText, tickText } from "FORMATS";
const wanted = [
  [secondsText(1.5), "1.5 s"], [secondsText(0), "0.0 s"], [secondsText(28e-6, 3), "28 us"],
  [secondsText(0.0004, 3), "400 us"], [secondsCell(1.5, 3), "1.500"], [secondsCell(28e-6, 3), "28 us"],
  [millisecondsCell(12), "12"], [millisecondsCell(0), "0"],
  [millisecondsCell(0.03), "30 us"], [tickText(0.00002), "0.00002"], [tickText(0.25), "0.25"], [tickText(null), ""],
];
for (const [text, expected] of wanted) if (text !== expected) throw new Error(`${text} instead of ${expected}`);
for (let power = -9; power < 6; power += 0.01) {
  for (const digits of [0, 1, 2, 3]) {
    const text = secondsText(10 ** power, digits);
    if (!/[1-9]/.test(text)) throw new Error(`${power} ${digits} ${text}`);
  }
}
"""
NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the page's JavaScript")


def ran(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``script`` with the page's own module of formats."""
    module = shutil.copy(FORMATS, folder / "format.mjs")
    (folder / "tries.mjs").write_text(script.replace("FORMATS", str(module)), "utf-8")
    return subprocess.run(["node", folder / "tries.mjs"], capture_output=True, text=True, check=False)


@NEEDS_NODE
def test_a_difference_on_the_page_is_the_difference_of_what_is_shown(tmp_path: Path) -> None:
    done = ran(TRIES, tmp_path)
    assert done.returncode == 0, done.stderr


@NEEDS_NODE
def test_a_time_on_the_page_has_a_unit_that_shows_it(tmp_path: Path) -> None:
    done = ran(TIMES, tmp_path)
    assert done.returncode == 0, done.stderr
