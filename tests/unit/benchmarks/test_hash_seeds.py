"""A bar of the paper among the draws of its hashes."""

from __future__ import annotations

from benchmarks.hash_seeds import MAX_MIN, line, pairs
from testbed.reproduce.crux.paper_bars import FIGURES
from testbed.reproduce.flow_entries import AS_PACKETS


def test_a_row_has_the_papers_bars_beside_the_seeds() -> None:
    bar = FIGURES["crux-fig19"][0]
    cells = line(bar, *(pairs(bar.scenario, (1, 2), sharing) for sharing in (AS_PACKETS, MAX_MIN))).columns
    assert cells["without: paper"] == f"{100 * bar.without:.1f}"
    least, most = (float(each) for each in str(cells["least, most"]).split(", "))
    assert least <= float(str(cells["mean"])) <= most < float(str(cells["here"]))
    assert float(str(cells["max-min"])) < float(str(cells["mean"])) - 1.0  # windows share this one otherwise
    assert str(cells["JCT: paper / here"]).count("/") == len(bar.jct) > 0
