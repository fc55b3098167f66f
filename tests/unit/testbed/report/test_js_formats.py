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


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the page's JavaScript")
def test_a_difference_on_the_page_is_the_difference_of_what_is_shown(tmp_path: Path) -> None:
    module = shutil.copy(FORMATS, tmp_path / "format.mjs")
    (tmp_path / "tries.mjs").write_text(TRIES.replace("FORMATS", str(module)), "utf-8")
    done = subprocess.run(["node", tmp_path / "tries.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
