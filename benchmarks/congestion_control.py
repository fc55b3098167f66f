"""Congestion control of the simulation at line rate, beside the analysis of those who proposed it.

DCQCN's and HPCC's fixed points, DCTCP's queue, how long DCQCN takes to share, Jain's index by transport and number of
flows, and what pauses cost flows that meet them. Sends nothing, no root.
"""

from __future__ import annotations

import tempfile
from itertools import chain
from pathlib import Path
from typing import Final

from benchmarks.common import Line, main
from benchmarks.rdma.fixed_points import dcqcn, dcqcn_convergence, dctcp, fairness, hpcc
from benchmarks.rdma.pause_victims import unfairness, victim

TITLE: Final = "Congestion control against analysis"
FLOWS: Final = (2, 4, 8, 16, 32)
QUICK: Final = (2, 8)


def measure(quick: bool) -> list[Line]:
    """A row per figure."""
    flows = QUICK if quick else FLOWS
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        parts = (
            dcqcn(folder, flows),
            dcqcn_convergence(folder),
            hpcc(folder, flows),
            dctcp(folder),
            fairness(folder, flows),
            unfairness(folder),
            victim(folder),
        )
        return list(chain.from_iterable(parts))


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
