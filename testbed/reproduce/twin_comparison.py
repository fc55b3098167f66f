"""Every bundled scenario under every scheduler, emulated and by the flow engine: the error of the flow engine.

The packets of each emulation are simulated at its scale; the errors with rates that
fixed windows have in the long run, and with max-min fair shares, which papers assume, stand beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from controller.schedulers.registry import names
from testbed.errors import EXIT_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK, BadInputError
from testbed.experiment.experiment import Sharing
from testbed.progress import Progress
from testbed.reproduce.flow_entries import AS_PACKETS, Entry, Twin, flow_entry, twin_experiment
from testbed.reproduce.kept_runs import Execute, RunOutcome, Runs, Task, Treatment, emulate
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.twin_sensitivity import MOVED_S, largest_range, moved_starts
from testbed.scenario import emulated, load

LEFT_OUT: Final = ("fixed", "ecmp-switch")
"""One takes its decision from the scenario; the other leaves paths to the switches' hash, which only they know."""
_OTHERS: Final[tuple[Sharing, ...]] = ("proportional", "max-min")
ITERATION_ERROR: Final = 0.03
POINTS: Final = 1.5


def reproduce(settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return a row for each scenario and scheduler; emulations kept in ``settings.out`` are reused."""
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = {(s, t): [Task(s, t, seed) for seed in seeds] for s, t in pairs(settings.only)}
    runs = Runs(settings.out, redo=settings.redo, execute=execute)
    found = runs.all([task for tasks in wanted.values() for task in tasks], progress)
    progress.phase("flow engine", len(wanted))
    rows = []
    for place, ((scenario, treatment), tasks) in enumerate(wanted.items(), 1):
        rows.append(_row(f"{scenario}/{treatment.name}", tasks, found))
        progress.advance_to(place)
    return rows


def pairs(only: Sequence[str]) -> list[tuple[str, Treatment]]:
    """Return the scenarios and schedulers; those of ``only`` (SCENARIO or SCENARIO/SCHEDULER), all if it is empty.

    A scenario is named as for ``run``: with or without ``.yaml``.
    """
    every = [(scenario, Treatment(label, label)) for scenario in emulated() for label in _schedulers_of(scenario)]
    rows = {pair: _names(pair[0], pair[1].name) for pair in every}
    known = {name for names_of_row in rows.values() for name in names_of_row}
    for word in only:
        if word not in known:
            raise BadInputError(f"--row {word}: no such row, expected a bundled SCENARIO or SCENARIO/SCHEDULER")
    return [pair for pair, names_of_row in rows.items() if not only or names_of_row & set(only)]


def _names(scenario: str, scheduler: str) -> set[str]:
    """What a row answers to."""
    short = scenario.removesuffix(".yaml")
    return {scenario, short, f"{scenario}/{scheduler}", f"{short}/{scheduler}"}


def _schedulers_of(scenario: str) -> list[str]:
    """All schedulers by name, and those that the scenario has under a label of its own."""
    loaded, known = load(scenario), names()
    labels = [choice.label for choice in loaded.choices if choice.label not in known]
    isolating = ("ideal",) if loaded.manager else ()
    weighing = () if loaded.network.transport == "window" else ("mltcp",)
    return [name for name in (*known, *labels) if name not in (*LEFT_OUT, *isolating, *weighing)]


def _row(label: str, tasks: Sequence[Task], found: Mapping[Task, RunOutcome]) -> PaperRow:
    """Means over the seeds, also of every job's iterations; of runs whose verdict is ``ok``, if there are any.

    A run so disturbed that no iteration of it counts has no numbers.
    """
    made = [task for task in tasks if _counts(found[task].entry)]
    believable = [task for task in made if found[task].verdict == "ok"] or made
    here = numbers(_beside(believable, found, AS_PACKETS)) | _moved(believable, found)
    for sharing in _sharings(believable, found):
        here |= _errors(sharing, _beside(believable, found, sharing))
    problems = [found[task].problem for task in tasks if found[task].problem]
    verdicts = sorted({found[task].verdict for task in tasks if found[task].verdict not in ("ok", "failed")})
    note = "; ".join([*problems, *verdicts] or _misses(here))
    status = EXIT_FAILED if problems else EXIT_NOT_BELIEVABLE if verdicts else EXIT_OK
    return PaperRow(label, {}, here, note, status)


def _sharings(tasks: Sequence[Task], found: Mapping[Task, RunOutcome]) -> Sequence[Sharing]:
    """How flows share links in the flow engine; proportionally only where each is on one path."""
    spread = any(twin_experiment(task, found[task].scale(), "max-min").spreads for task in tasks[:1])
    return ("max-min",) if spread else _OTHERS


def _counts(entry: Entry | None) -> bool:
    """Whether at least one job of a run has an iteration that counts."""
    return entry is not None and any(job["iteration_s"]["mean"] for job in entry["jobs"])


def _beside(tasks: Sequence[Task], found: Mapping[Task, RunOutcome], twin: Twin) -> list[tuple[Entry, Entry]]:
    """The entries of both engines for each of ``tasks``."""
    entries = ((task, found[task]) for task in tasks)
    return [(run.entry, flow_entry(twin_experiment(task, run.scale(), twin))) for task, run in entries if run.entry]


def _errors(sharing: Sharing, made: Sequence[tuple[Entry, Entry]]) -> dict[str, float]:
    """The errors of the flow engine if flows share links by ``sharing``."""
    here = numbers(made)
    name = sharing.replace("-", "_")
    return {f"{name}_{key}": here[key] for key in ("points", "iteration_error") if here}


def _moved(tasks: Sequence[Task], found: Mapping[Task, RunOutcome]) -> dict[str, float]:
    """What the flow engine says if jobs start some milliseconds later, and how far that moves an iteration."""
    draws = {task: moved_starts(task, found[task].scale()) for task in tasks if found[task].entry}
    here = numbers([(entry, its) for task, moved in draws.items() if (entry := found[task].entry) for its in moved])
    if not here:
        return {}
    spread = max(largest_range(moved) for moved in draws.values())
    return {"moved_points": here["points"], "moved_iteration_error": here["iteration_error"], "moved_range": spread}


def numbers(made: Sequence[tuple[Entry, Entry]]) -> dict[str, float]:
    """Return both engines' utilisations, their difference in points, and the largest error of a job's iteration."""
    if not made:
        return {}
    emulated = fmean(float(entry["gpu_utilization"]) for entry, _ in made)
    computed = fmean(float(its["gpu_utilization"]) for _, its in made)
    errors = iteration_errors(made).values()
    return {
        "emulation": emulated,
        "flow": computed,
        "points": 100 * (computed - emulated),
        "iteration_error": max(errors, key=abs, default=0.0),
    }


def iteration_errors(made: Sequence[tuple[Entry, Entry]]) -> dict[str, float]:
    """Job -> relative error of its iteration, the mean over the seeds in which both engines have one.

    Where small delays decide whether a job of a low level still fits into a period of those above it, single
    seeds differ by percents in either engine.
    """
    both: dict[str, list[tuple[float, float]]] = {}
    for entry, its in made:
        computed = {job["name"]: job["iteration_s"]["mean"] for job in its["jobs"]}
        for job in entry["jobs"]:
            if (emulated_s := job["iteration_s"]["mean"]) and (computed_s := computed[job["name"]]):
                both.setdefault(job["name"], []).append((emulated_s, computed_s))
    return {name: fmean(its for _, its in times) / fmean(mine for mine, _ in times) - 1 for name, times in both.items()}


def _misses(here: Mapping[str, float]) -> list[str]:
    missed = []
    if abs(here.get("points", 0.0)) > POINTS:
        missed.append(f"more than {POINTS:g} points apart")
    if abs(here.get("iteration_error", 0.0)) > ITERATION_ERROR:
        missed.append(f"an iteration more than {ITERATION_ERROR:.0%} off")
    if missed and (moved := here.get("moved_range", 0.0)) > ITERATION_ERROR:
        missed.append(f"starts up to {1000 * MOVED_S:g} ms later move an iteration of the flow engine by {moved:.1%}")
    return missed
