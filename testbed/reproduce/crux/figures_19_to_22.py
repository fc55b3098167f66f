"""Figures 19 to 22 of Crux: utilisations and changes of JCT over hash seeds, beside the paper's bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any, Final

from testbed.progress import Progress
from testbed.reproduce.crux.emulation_plots import bars as bars_plot
from testbed.reproduce.crux.fluid_prediction import overall, predict
from testbed.reproduce.crux.inputs.figure_runs import a_priori, ranges
from testbed.reproduce.crux.paper_bars import Bar, chosen
from testbed.reproduce.kept_runs import CRUX, ECMP, IDEAL, Execute, RunOutcome, Runs, Task, emulate, exit_status, not_ok
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot

Entry = Mapping[str, Any]

CALIBRATED_ON: Final = (
    "ideal: each figure's Ideal bars; without: overlaps of BERT and ResNet, GPT's hidden share, channels and ResNet's "
    "compute, fitted to the ten bars without Crux (crux-calibration). Bars with Crux and changes of JCT are not fitted"
)
KEYS: Final = {ECMP.name: "without", CRUX.name: "crux", IDEAL.name: "ideal"}


def reproduce(name: str, settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return the rows of figure ``name``, in the order of the paper; the plot goes to ``settings.out``."""
    bars = chosen(name, settings.only)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = {bar.scenario: tasks(bar, seeds) for bar in bars}
    runs = Runs(settings.out, redo=settings.redo, execute=execute)
    found = runs.all([task for own in wanted.values() for task in own], progress)
    progress.phase("fluid model")
    rows = [
        row(bar, wanted[bar.scenario], found, a_priori(bar.scenario, seeds), ranges(bar.scenario, seeds))
        for bar in bars
    ]
    write_plot(lambda: bars_plot(name, rows), settings.out, "+".join(settings.only) or name)
    return rows


figure_19: Final = partial(reproduce, "crux-fig19")
figure_20: Final = partial(reproduce, "crux-fig20")
figure_21: Final = partial(reproduce, "crux-fig21")
figure_22: Final = partial(reproduce, "crux-fig22")


def tasks(bar: Bar, seeds: Iterable[int]) -> list[Task]:
    """Return the runs of one row: ECMP and Crux with every seed; isolated jobs, independent of hashes, with one."""
    every = [Task(bar.scenario, treatment, seed) for seed in seeds for treatment in (ECMP, CRUX)]
    return [*every, Task(bar.scenario, IDEAL, every[0].seed)]


def kind(job: str) -> str:
    """``bert-1`` -> ``bert``."""
    return job.partition("-")[0]


def utilization(entry: Entry) -> float:
    """The mean of the jobs' utilisations weighted by GPUs, as in the paper's bars; not by the length of windows."""
    gpus = {job["name"]: int(job["gpus"]) for job in entry["jobs"]}
    return overall({job["name"]: float(job["gpu_utilization"]) for job in entry["jobs"]}, gpus)


def jct_changes(before: Entry, after: Entry) -> dict[str, float]:
    """Return kind of job -> mean relative change of JCT over those of its jobs that completed an iteration."""
    old = {job["name"]: job["jct_s"] for job in before["jobs"]}
    found: dict[str, list[float]] = {}
    for job in after["jobs"]:
        if job["jct_s"] and old.get(job["name"]):
            found.setdefault(kind(job["name"]), []).append(job["jct_s"] / old[job["name"]] - 1)
    return {name: fmean(values) for name, values in found.items()}


def row(
    bar: Bar,
    wanted: Sequence[Task],
    found: Mapping[Task, RunOutcome],
    beforehand: Mapping[str, float],
    likely: Mapping[str, float],
) -> PaperRow:
    """Return the row of ``bar``: means over the seeds whose runs completed, spread as standard deviation.

    By the flow engine: ``beforehand``, the same with the inputs that were chosen before anything was compared, and
    ``likely``, the least and the most over all inputs that the bars without Crux do not tell apart.
    """
    here: dict[str, float] = {}
    for name, key in KEYS.items():
        entries = [found[task].entry for task in wanted if task.treatment.name == name]
        values = [utilization(entry) for entry in entries if entry]
        here |= _mean_and_spread(key, values) | {f"{key}_fluid": expected(wanted, name)}
    here |= _pairs(wanted, found) | dict(likely)
    return PaperRow(
        bar.label,
        bar.paper,
        here,
        _note(bar, here, wanted, found),
        exit_status(found[task] for task in wanted),
        fitted=("without", "ideal"),
        calibrated_on=CALIBRATED_ON,
        a_priori=beforehand,
    )


def expected(wanted: Sequence[Task], treatment: str) -> float:
    """Return the prediction of the fluid model, the mean over the seeds."""
    experiments = [task.experiment() for task in wanted if task.treatment.name == treatment]
    gpus = {job.name: len(job.gpus) for job in experiments[0].jobs}
    return fmean(overall(predict(experiment), gpus) for experiment in experiments)


def _mean_and_spread(key: str, values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    spread = {f"{key}_spread": stdev(values)} if len(values) > 1 else {}
    return {key: fmean(values), **spread, f"{key}_seeds": float(len(values))}


def _pairs(wanted: Sequence[Task], found: Mapping[Task, RunOutcome]) -> dict[str, float]:
    """Gain and change of JCT per seed: Crux against ECMP on the same five-tuples."""
    gains: list[float] = []
    changes: dict[str, list[float]] = {}
    for before in (task for task in wanted if task.treatment == ECMP):
        old, new = found[before].entry, found[Task(before.scenario, CRUX, before.seed)].entry
        if not old or not new:
            continue
        gains.append(100 * (utilization(new) - utilization(old)))
        for name, change in jct_changes(old, new).items():
            changes.setdefault(name, []).append(change)
    gain = _mean_and_spread("gain_points", gains)
    gain.pop("gain_points_seeds", None)
    return gain | {f"jct_{name}": fmean(values) for name, values in changes.items()}


def _note(bar: Bar, here: Mapping[str, float], wanted: Sequence[Task], found: Mapping[Task, RunOutcome]) -> str:
    changes = [
        f"{name} {100 * change:+.0f} % (here {100 * here[f'jct_{name}']:+.0f} %{_range(here, f'jct_{name}')})"
        for name, change in bar.jct.items()
        if f"jct_{name}" in here
    ]
    said = f"JCT with Crux: {', '.join(changes)}; ranges: other inputs that fit as well, by the flow engine"
    parts = (said if changes else "", not_ok(wanted, found))
    return "; ".join(part for part in parts if part)


def _range(here: Mapping[str, float], key: str) -> str:
    """In words, how far a change in percent moves with the inputs; nothing where it does not."""
    least, most = (f"{100 * here[f'{key}_{end}']:+.0f}" for end in ("least", "most"))
    return f", {least} to {most}" if least != most else ""
