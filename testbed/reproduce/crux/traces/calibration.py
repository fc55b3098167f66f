"""Fits the two unpublished inputs of the trace figures, each to one number of the paper.

The placement: the probability that a job gives up its locality, to the share of running jobs that share a link
(section 2.2, figure 6). The volumes: a factor on what every job sends, to the utilisation without a scheduler of
communication (figure 25, bar "None"). No other number of the paper is read here; the tests check it.

One after the other (:func:`placement`, :func:`volume`): in the first fit every job takes its recorded time, and what it
gives is an input of the second from :mod:`testbed.reproduce.crux.traces.fitted`. Or together (:func:`production`): both
numbers are measurements of production without Crux, so the same replay under ECMP has to show both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Final

import numpy as np

from testbed.progress import Progress
from testbed.reproduce.crux.traces.fitted import CHANNELS, scatter_of
from testbed.reproduce.crux.traces.inputs import TraceInputs
from testbed.reproduce.kept_replays import Cell, cell, trace_note, trace_of
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.replay_ensembles import Ensemble, ensembles, over, utilization

SHARING_JOBS: Final = 0.363
"""Figure 6: running jobs that share a link with another, as a time average. What the placement is fitted to."""
NONE_ALONE: Final = 0.39
"""Figure 25, bar "None": GPU utilisation. What the volumes are fitted to."""

TO_FIGURE_6: Final = "the jobs that share a link (figure 6)"
TO_NONE: Final = "the bar None (figure 25)"

PROBABILITIES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
VOLUMES: Final = (0.5, 1.0, 1.5, 2.0, 3.0)
PRODUCTION: Final = ((0.0, 0.2, 0.4, 0.6), (0.5, 1.0, 1.5, 2.0, 3.0, 4.0))
"""Probabilities and volumes of :func:`production`."""

RECORDED: Final = 1e-6
"""A factor on volumes that leaves every link in use, and nobody waiting for one: each job takes its recorded time.

Figure 6 is a measurement of production, and so are the recorded times: they hold what contention cost there.
"""

Curve = Mapping[float, Ensemble]
"""Value of the input -> what comes out."""


def placement(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per probability with the share of jobs that share a link; the last row is the fit."""
    channels = settings.channels or CHANNELS
    cells = {each: _scattered(settings, TraceInputs(each, RECORDED, channels)) for each in PROBABILITIES}
    found = ensembles(list(cells.values()), settings, progress)
    curve = {each: over(found[cells[each]], itemgetter("sharing_jobs")) for each in cells}
    return _rows("probability", curve, SHARING_JOBS, TO_FIGURE_6, trace_note(trace_of(cells[0.0])))


def volume(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per factor on volumes with the utilisation under ECMP; the last row is the fit."""
    channels = settings.channels or CHANNELS
    scatter = scatter_of(channels)
    cells = {each: _scattered(settings, replace(scatter, volume=each)) for each in VOLUMES}
    found = ensembles(list(cells.values()), settings, progress)
    curve = {each: utilization(found[cells[each]]) for each in cells}
    return _rows("volume", curve, NONE_ALONE, TO_NONE, trace_note(trace_of(cells[1.0])))


def production(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per probability: the volume at which "None" comes out, and the share of jobs that share a link there.

    The last row is the fit: where that share is the paper's, too.
    """
    channels, (probabilities, volumes) = settings.channels or CHANNELS, PRODUCTION
    cells = {
        (relaxed, sent): _scattered(settings, TraceInputs(relaxed, sent, channels))
        for relaxed in probabilities
        for sent in volumes
    }
    found = ensembles(list(cells.values()), settings, progress)
    needed, sharing = dict[float, float](), dict[float, float]()
    for relaxed in probabilities:
        outcomes = {sent: found[cells[relaxed, sent]] for sent in volumes}
        at = crossing({sent: utilization(outcome).mean for sent, outcome in outcomes.items()}, NONE_ALONE)
        if at is not None:
            shares = {sent: over(outcome, itemgetter("sharing_jobs")).mean for sent, outcome in outcomes.items()}
            needed[relaxed], sharing[relaxed] = at, _between(shares, at)
    rows = [_together(f"probability {each:g}", needed.get(each), sharing.get(each)) for each in probabilities]
    fit, last = crossing(sharing, SHARING_JOBS), _together("fit", None, None, "both numbers never come out together")
    if fit is not None:
        last = _together("fit", _between(needed, fit), SHARING_JOBS)
        last = replace(last, here={"input": fit, **last.here}, fitted=("input", *last.fitted))
    return [replace(rows[0], note=trace_note(trace_of(next(iter(cells.values()))))), *rows[1:], last]


def _together(label: str, sent: float | None, sharing: float | None, problem: str = "None never comes out") -> PaperRow:
    here = {} if sent is None or sharing is None else {"volume": sent, "value": sharing}
    return PaperRow(
        label,
        {"value": SHARING_JOBS},
        here,
        "" if here else problem,
        fitted=("volume", "value"),
        calibrated_on=f"{TO_FIGURE_6} and {TO_NONE}",
    )


def _between(curve: Mapping[float, float], at: float) -> float:
    """The value at ``at`` on the line through the points of ``curve``."""
    return float(np.interp(at, sorted(curve), [curve[each] for each in sorted(curve)]))


def crossing(curve: Mapping[float, float], wanted: float) -> float | None:
    """Where the line through the points of ``curve`` first meets ``wanted``; None if it never does."""
    for (left, low), (right, high) in pairwise(sorted(curve.items())):
        if min(low, high) <= wanted <= max(low, high):
            return left if low == high else left + (right - left) * (wanted - low) / (high - low)
    return None


def _scattered(settings: Settings, inputs: TraceInputs) -> Cell:
    return inputs.of(cell(settings, "clos", "ecmp"))


def _rows(name: str, curve: Curve, wanted: float, calibrated_on: str, note: str) -> Sequence[PaperRow]:
    rows = [
        PaperRow(f"{name} {value:g}", {"value": wanted}, outcome.numbers("value"), fitted=("value",))
        for value, outcome in curve.items()
    ]
    found = crossing({value: outcome.mean for value, outcome in curve.items()}, wanted)
    said = "the curve never meets the paper's number" if found is None else ""
    fit = {} if found is None else {"input": found, "value": wanted}
    last = PaperRow("fit", {"value": wanted}, fit, said, fitted=("input", "value"))
    rows = [replace(rows[0], note=note), *rows[1:], last]
    return [replace(row, calibrated_on=calibrated_on) for row in rows]
