"""Every manager under every scheduler: the replays, with spreads, and which differences they prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from testbed.errors import BadInputError
from testbed.metrics.formats import proven_as_shown
from testbed.progress import Progress
from testbed.reproduce.kept_replays import Cell, cell, trace_note, trace_of
from testbed.reproduce.managers.heat_map import heat_map
from testbed.reproduce.managers.manager_experiments import SCHEDULERS
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from testbed.reproduce.replay_ensembles import Variants, ensembles, points_numbers, utilization
from topologies.input.spelling import expectation
from workloads.managers.catalogue import MANAGERS

_SHOWN = (
    "jct_mean_s",
    "jct_p50_s",
    "jct_p95_s",
    "jct_p99_s",
    "queue_mean_s",
    "queue_p95_s",
    "makespan_s",
    "preemptions",
    "migrations",
    "preempted_share",
    "unfairness",
    "allocated",
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager; a synthetic trace unless ``settings.trace`` names one. Draws a heat map.

    ``BadInputError`` if ``settings.only`` names no manager.
    """
    for name in settings.only:
        if name not in MANAGERS:
            raise BadInputError(f"--row {name}: no such manager, {expectation(name, MANAGERS)}")
    chosen = tuple(name for name in MANAGERS if not settings.only or name in settings.only)
    return managers_by_schedulers(settings, progress, chosen, SCHEDULERS)


def managers_by_schedulers(
    settings: Settings, progress: Progress, managers: Sequence[str], schedulers: Sequence[str]
) -> Sequence[PaperRow]:
    """A row per manager: utilisation under each scheduler, and the manager's metrics under the last.

    Differences are to the first of ``schedulers`` under the same manager.
    """
    cells = {
        (m, s): replace(cell(settings, "clos", s, m), reference=True, elastic=True)
        for m in managers
        for s in schedulers
    }
    found = ensembles(list(cells.values()), settings, progress)
    rows = [_row(name, found, [cells[name, each] for each in schedulers]) for name in managers]
    first = f"{trace_note(trace_of(next(iter(cells.values()))))}; {_summary(rows, schedulers)}"
    rows[0] = replace(rows[0], note="; ".join(part for part in (first, rows[0].note) if part))
    write_plot(lambda: heat_map(rows, schedulers), settings.out, "managers-x-schedulers")
    return rows


def _row(name: str, found: Mapping[Cell, Variants], cells: Sequence[Cell]) -> PaperRow:
    """The numbers of a manager, and which of its mechanisms had no input; ``cells``: as :func:`_numbers` takes them."""
    notes = dict.fromkeys(note for result in found[cells[-1]].values() for note in result["notes"])
    return PaperRow(name, {}, _numbers(found, cells), "; ".join(notes))


def _numbers(found: Mapping[Cell, Variants], cells: Sequence[Cell]) -> dict[str, float]:
    """The numbers of a manager; ``cells``: under each scheduler, the reference first."""
    busy = {each.scheduler: utilization(found[each]) for each in cells}
    reference, *others = busy
    here: dict[str, float] = {}
    for name, ensemble in busy.items():
        here |= ensemble.numbers(name)
    for name in others:
        here |= points_numbers(f"{name}_points", busy[name].against(busy[reference]))
    last = list(found[cells[-1]].values())
    here |= {key: fmean(float(result["manager"][key]) for result in last) for key in _SHOWN}
    return here | {key: fmean(float(result[key]) for result in last) for key in ("finished", "running", "waiting")}


def _summary(rows: Sequence[PaperRow], schedulers: Sequence[str]) -> str:
    """How many of the differences are larger than their spread."""
    reference, *others = schedulers
    differences = [
        (row.here[f"{name}_points"], row.here.get(f"{name}_points_spread")) for row in rows for name in others
    ]
    proven = sum(proven_as_shown(*each) for each in differences)
    return f"{proven} of {len(differences)} differences to {reference} exceed their spread; the others prove nothing"
