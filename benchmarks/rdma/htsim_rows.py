"""csg-htsim beside ours: CPU per packet hop of a permutation, and when messages end, alone and in incasts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final

from benchmarks.common import Line, say
from benchmarks.rdma.htsim import Done, Work, in_htsim, in_ours
from testbed.errors import RunFailedError

TITLE: Final = "csg-htsim beside ours"
HOW: Final = (
    "no rows of csg-htsim: clone github.com/Broadcom/csg-htsim, run make in sim and in sim/datacenter, "
    "and give the latter as --htsim"
)
COSTS: Final = (("htsim_roce", "unlimited"), ("htsim_roce", "dcqcn"), ("htsim_hpcc", "hpcc"))
"""It has no DCQCN: its RoCE sends at line rate until it is paused. Its HPCC prints a line per answer."""
ENDS: Final = (("htsim_roce", "unlimited"), ("htsim_hpcc", "hpcc"))
RADIXES: Final = (8, 12)
"""Fat trees of 128 and 432 hosts."""
COST_PACKETS: Final = 1000
END_PACKETS: Final = 2000
SENDERS: Final = (2, 8, 32)
ATTEMPTS: Final = 3
LAST_END: Final = 0.05
"""How far the ends of the last messages may be apart."""


def costs(folder: Path, scratch: Path, radix: int) -> Iterator[Line]:
    """Every host sends to the one half of the fabric away, over six links and the path of a hash."""
    for program, transport in COSTS:
        say(f"{program} and {transport}, fat tree of {radix}")
        columns = {"csg-htsim": program, "ours": transport, "work": f"permutation of {radix**3 // 4}"}
        try:
            theirs = _cost_s(partial(in_htsim, folder=folder, program=program, scratch=scratch), radix)
        except RunFailedError as error:
            yield Line(columns, "", "inconclusive", str(error))
            continue
        here = _cost_s(partial(in_ours, transport=transport, scratch=scratch), radix)
        ratio = theirs / here
        found = {"figure": "CPU s per million hops", "theirs": theirs, "here": here, "ratio": f"{ratio:.1f}"}
        yield Line({**columns, **found}, "1 at least", "pass" if ratio >= 1 else "missed")


def _cost_s(simulate: Callable[[Work], Done], radix: int) -> float:
    """CPU seconds per million hops of packets, the least of some tries, without what a packet of each message takes."""
    hosts = radix**3 // 4
    pairs = tuple((source, (source + hosts // 2) % hosts) for source in range(hosts))
    one, all_of_it = Work(radix, pairs, 1), Work(radix, pairs, 1 + COST_PACKETS)
    simulate(one)
    least = [min(simulate(work).cpu_s for _ in range(ATTEMPTS)) for work in (one, all_of_it)]
    return 1e6 * (least[1] - least[0]) / (all_of_it.hops - one.hops)


def ends(folder: Path, scratch: Path) -> Iterator[Line]:
    """When messages end, mean and last: to a neighbour on the same ToR, and of several hosts to one."""
    radix = RADIXES[0]
    hosts = radix**3 // 4
    works = [("each to a neighbour", tuple((host, host ^ 1) for host in range(hosts)))]
    works += [(f"{many} to one", tuple((hosts // 2 + host, 0) for host in range(many))) for many in SENDERS]
    for program, transport in ENDS:
        for name, pairs in works:
            say(f"{program} and {transport}, {name}")
            columns = {"csg-htsim": program, "ours": transport, "work": name}
            work = Work(radix, pairs, END_PACKETS)
            try:
                theirs = in_htsim(work, folder, program, scratch).ends_s
            except RunFailedError as error:
                yield Line(columns, "", "inconclusive", str(error))
                continue
            yield from _compared(columns, theirs, in_ours(work, transport, scratch).ends_s)


def _compared(columns: Mapping[str, object], theirs: Sequence[float], ours: Sequence[float]) -> Iterator[Line]:
    """Two rows of when messages end; only the last has a target, as paths that a hash gives decide about the others."""
    for figure, of in (("mean end, us", fmean), ("last end, us", max)):
        there, here = 1e6 * of(theirs), 1e6 * of(ours)
        found = {"figure": figure, "theirs": f"{there:.1f}", "here": f"{here:.1f}", "ratio": f"{there / here:.3f}"}
        if of is fmean:
            yield Line({**columns, **found})
        else:
            met = abs(there / here - 1) <= LAST_END
            yield Line({**columns, **found}, f"within {LAST_END:.0%}", "pass" if met else "missed")


def missing(folder: Path) -> list[str]:
    """Its programs that ``folder`` does not have."""
    return sorted({program for program, _ in COSTS if not (folder / program).is_file()})


def rows(folder: Path, quick: bool) -> list[Line]:
    """All rows; with ``quick`` only the smaller fat tree."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        scratch = Path(name)
        found = [line for radix in RADIXES[: 1 if quick else None] for line in costs(folder, scratch, radix)]
        return found + list(ends(folder, scratch))
