"""Load of every link by job and level over time, derived from rows that know links and levels but no jobs. Pure.

The decision in force says which flows cross a link and on which level. What a link sent on a level in a sample belongs
to the jobs with flows there; where several share the level, it is apportioned by the bytes that their flows send per
iteration times the iterations that they made in that sample. Levels without such a flow (levels by bytes, levels that
change within a sample) are apportioned over all flows on the link; links without any flow stay unattributed (-1), such
as those that carry only acknowledgements or flows whose path the switches chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.decision import Decision
from testbed.results.record import DecisionRow, IterationRow, LinkRow, RunRecord
from topologies.fabric import Link
from workloads.job import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNKNOWN: Final = -1
UNFINISHED: Final = 1e-6
"""Iterations that a job without whole ones counts for: next to nothing beside a job that makes some."""
LEAST_LOAD: Final = 1e-4
"""Series that never reach this share of a link are left out: a tenth of a pixel."""
MAX_SAMPLES: Final = 600
"""More samples than this are joined, neighbours with neighbours: a screen has no more columns."""
DECISIONS_PER_SAMPLE: Final = 8
"""Decisions looked at in one sample; schedulers that decide at every communication step make more."""


@dataclass(frozen=True)
class JobLoads:
    """``loads``: (series, samples), shares of the link's rate; of each series its link, job (-1: unknown) and level.

    ``edges_s``: samples + 1 times in seconds.
    """

    edges_s: Floats
    link: Ints
    job: Ints
    level: Ints
    loads: Floats


@dataclass(frozen=True)
class _Crossings:
    """A row per flow and link on its path: link, level, stint and bytes per iteration of the flow."""

    link: Ints
    level: Ints
    stint: Ints
    bytes: Floats


def job_loads(
    record: RunRecord, stints: Sequence[Job], job_of: Sequence[int], links: Sequence[Link], levels: int
) -> JobLoads | None:
    """The loads of ``record``; ``stints`` are its placed jobs, ``job_of`` their indices on the page; None without rows.

    ``links``: those to look at, all series name them by their place. ``levels``: K, the number of priority levels.
    """
    index = {link.name: place for place, link in enumerate(links)}
    rows = [row for row in record.links if row.link in index]
    if not rows:
        return None
    edges, sent = _sent(rows, index, levels)
    iterations = iterations_made(record.iterations, stints, edges)
    jobs = max(job_of, default=-1) + 2
    column = np.asarray(job_of, dtype=np.int64)
    kept: dict[int, _Crossings] = {}
    parts = []
    for sample, weights in _in_force(record.decisions, edges):
        for place, _ in weights:
            if place not in kept:
                kept[place] = _crossings(record.decisions[place].decision, stints, index, levels)
        crossings = _joined([(kept[place], share) for place, share in weights])
        keys, sizes = _apportion(sent[:, :, sample], crossings, iterations[:, sample], column, jobs)
        parts.append((keys, np.full(len(keys), sample), sizes))
    rates = np.array([link.capacity for link in links])
    return _as_series(parts, edges, rates, sent.shape[1], jobs)


def iterations_made(rows: Sequence[IterationRow], stints: Sequence[Job], edges: Floats) -> Floats:
    """(stints, samples): iterations that each job made between the edges; parts count as parts. By its first GPU."""
    spans: dict[str, list[tuple[float, float]]] = {job.name: [] for job in stints}
    first = {job.name: job.gpus[0] for job in stints if job.gpus}
    for row in rows:
        if first.get(row.job) == row.gpu and row.end_s > row.start_s:
            spans[row.job].append((row.start_s, row.end_s))
    made = np.zeros((len(stints), len(edges) - 1))
    for place, job in enumerate(stints):
        done = np.zeros(len(edges))
        for begin, end in spans[job.name]:
            done += np.clip((edges - begin) / (end - begin), 0.0, 1.0)
        made[place] = np.diff(done)
    return made


def _sent(rows: Sequence[LinkRow], index: Mapping[str, int], levels: int) -> tuple[Floats, Floats]:
    """Edges of the samples in seconds, and bytes sent: (links, levels, samples)."""
    times = sorted({row.time_s for row in rows})
    # The first sample tells what was sent since the one before it, which is not there.
    first = times[0] - (times[1] - times[0] if len(times) > 1 else 1.0)
    joined = -(-len(times) // MAX_SAMPLES)
    edges = np.array([max(0.0, first) if times[0] > 0 else first, *times[joined - 1 :: joined]])
    if edges[-1] < times[-1]:
        edges = np.append(edges, times[-1])
    sample = np.searchsorted(edges, [row.time_s for row in rows], side="left") - 1
    level = np.clip([row.level for row in rows], 0, levels - 1)
    sent = np.zeros((len(index), levels, len(edges) - 1))
    place = [index[row.link] for row in rows]
    cell = (np.array(place), level, sample)
    np.add.at(sent, cell, [row.bytes for row in rows])
    return edges, sent


def _in_force(decisions: Sequence[DecisionRow], edges: Floats) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Sample -> (place of a decision, share of the sample in which it was in force)."""
    starts = np.array([row.time_s for row in decisions])
    for sample, (begin, end) in enumerate(pairwise(edges)):
        last = int(np.searchsorted(starts, end, side="left"))
        first = max(0, int(np.searchsorted(starts, begin, side="right")) - 1)
        places = list(range(first, last)) or ([0] if len(starts) else [])
        places = places[:: -(-len(places) // DECISIONS_PER_SAMPLE) or 1]
        bounds = [begin, *(max(begin, float(starts[place])) for place in places[1:]), end]
        yield sample, [(place, bounds[i + 1] - bounds[i]) for i, place in enumerate(places)]


def _joined(parts: Sequence[tuple[_Crossings, float]]) -> _Crossings:
    """The crossings of all decisions of a sample, the bytes of each weighted by the time it was in force."""
    if len(parts) == 1:
        return parts[0][0]
    none = np.zeros(0, dtype=np.int64)
    return _Crossings(
        np.concatenate([none, *(part.link for part, _ in parts)]),
        np.concatenate([none, *(part.level for part, _ in parts)]),
        np.concatenate([none, *(part.stint for part, _ in parts)]),
        np.concatenate([np.zeros(0), *(part.bytes * share for part, share in parts)]),
    )


def _crossings(decision: Decision, stints: Sequence[Job], index: Mapping[str, int], levels: int) -> _Crossings:
    table = [
        (index[link], decision.level_of(flow, levels - 1), place, flow.bytes)
        for place, job in enumerate(stints)
        for flow in job.flows
        for link in decision.paths.get(flow.id, ())
        if link in index
    ]
    link, level, stint = (np.array([row[column] for row in table], dtype=np.int64) for column in range(3))
    return _Crossings(link, np.clip(level, 0, levels - 1), stint, np.array([row[3] for row in table]))


def _apportion(sent: Floats, crossings: _Crossings, made: Floats, column: Ints, jobs: int) -> tuple[Ints, Floats]:
    """Keys (link x levels + level) x jobs + job, and the bytes of each in one sample; ``sent`` is (links, levels)."""
    levels, flat = sent.shape[1], sent.ravel()
    keys, place = np.unique(
        (crossings.link * levels + crossings.level) * jobs + column[crossings.stint], return_inverse=True
    )
    # The rows end with the last whole iteration: what is sent after it counts by bytes alone.
    weights = _summed(place, crossings.bytes * (made[crossings.stint] + UNFINISHED), len(keys))
    cells = keys // jobs
    total = _summed(cells, weights, len(flat))
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.where(total[cells] > 0, flat[cells] * weights / total[cells], 0.0)
    rest = np.nonzero((flat > 0) & (total <= 0))[0]
    more = [_over_all_flows(int(cell), float(flat[cell]), keys, weights, levels, jobs) for cell in rest]
    return np.concatenate([keys, *(each for each, _ in more)]), np.concatenate([sizes, *(each for _, each in more)])


def _over_all_flows(cell: int, size: float, keys: Ints, weights: Floats, levels: int, jobs: int) -> tuple[Ints, Floats]:
    """``size`` bytes of a link and level that no flow has, over the jobs of all flows on that link."""
    link = cell // levels
    first, last = np.searchsorted(keys, [link * levels * jobs, (link + 1) * levels * jobs])
    shares = _summed(keys[first:last] % jobs, weights[first:last], jobs)
    if shares.sum() <= 0:
        return np.array([cell * jobs + jobs - 1]), np.array([size])
    users = np.nonzero(shares)[0]
    return cell * jobs + users, size * shares[users] / shares.sum()


def _summed(place: Ints, weights: Floats, count: int) -> Floats:
    return np.bincount(place, weights=weights, minlength=count).astype(np.float64)


def _as_series(
    parts: Sequence[tuple[Ints, Ints, Floats]], edges: Floats, rates: Floats, levels: int, jobs: int
) -> JobLoads:
    keys, samples, sizes = (np.concatenate([part[column] for part in parts]) for column in range(3))
    known, place = np.unique(keys, return_inverse=True)
    table = np.zeros((len(known), len(edges) - 1))
    np.add.at(table, (place, samples), sizes)
    link, level, job = known // (levels * jobs), known // jobs % levels, known % jobs
    loads = 8 * table / np.diff(edges) / rates[link, None]
    used = (loads > LEAST_LOAD).any(axis=1)
    job = np.where(job == jobs - 1, UNKNOWN, job)
    return JobLoads(edges, link[used], job[used], level[used], loads[used])
