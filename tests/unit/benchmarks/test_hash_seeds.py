"""A bar of the paper among the draws of its hashes."""

from __future__ import annotations

from benchmarks.hash_seeds import line, pair
from testbed.reproduce.crux.paper_bars import FIGURES


def test_a_row_has_the_papers_bars_beside_the_seeds() -> None:
    bar = FIGURES["crux-fig21"][0]
    entries = [pair(bar.scenario, seed) for seed in (1, 2)]
    cells = line(bar, entries).columns
    assert cells["without: paper"] == f"{100 * bar.without:.1f}"
    least, most = (float(each) for each in str(cells["least, most"]).split(", "))
    assert least <= float(str(cells["mean"])) <= most < float(str(cells["here"]))
    assert str(cells["JCT: paper / here"]).count("/") == len(bar.jct) > 0
