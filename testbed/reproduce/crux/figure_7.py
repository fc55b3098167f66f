"""Figure 7 of Crux: how much a BERT job under the same two ToRs slows a GPT job, over hash seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from types import MappingProxyType
from typing import Any, Final

from testbed.api import prepare
from testbed.progress import Progress
from testbed.reproduce.crux.emulation_plots import slow_downs
from testbed.reproduce.crux.fluid_prediction import overall, predict
from testbed.reproduce.crux.inputs.figure_runs import ENOUGH, overrides
from testbed.reproduce.flow_entries import AS_PACKETS, flow_entry, flow_experiment
from testbed.reproduce.kept_runs import ECMP, ECMP_ALONE, Execute, RunOutcome, Runs, Task, emulate, exit_status, not_ok
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from workloads.models.calibration import CALIBRATED, allreduce_bytes
from workloads.models.figure_calibration import A_PRIORI, HIDDEN_SHARE, LAYOUTS, FigureInputs

NAME: Final = "crux-fig7"
PAPER: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "GPT iteration": {"change": 0.110, "alone_s": 1.530, "with_s": 1.696},
        "GPT throughput": {"change": -0.099},
        "BERT throughput": {"change": -0.077},
        "GPU utilisation": {"change": -0.095},
    }
)
"""Section 2.2 and the means of figure 7's two curves."""

CALIBRATED_ON: Final = (
    "jobs alone: the Ideal bars of figures 19 and 20; overlap of BERT, GPT's hidden share and channels: the ten bars "
    "without Crux of figures 19 to 22 (crux-calibration). No number of figure 7 is fitted"
)

UPLINKS: Final = (8, 16, 24, 48)
"""Uplinks per ToR to try; 48 is 1:1 for six hosts."""
SHARES: Final = (HIDDEN_SHARE, 1 / 3, 1 / 2)
"""Communication of GPT over its compute, to try: the largest is three quarters of its overlap."""


@dataclass(frozen=True)
class Pair:
    """One seed: every job's utilisation with the other job and alone, on the same hashed paths; times in s."""

    beside: Mapping[str, float]
    alone: Mapping[str, float]
    gpus: Mapping[str, int]
    beside_s: float = 0.0
    alone_s: float = 0.0

    @property
    def changes(self) -> dict[str, float]:
        """Relative changes by the labels of :data:`PAPER`; a job's throughput goes with its utilisation."""
        ratio = {name: value / self.alone[name] for name, value in self.beside.items()}
        iteration = self.beside_s / self.alone_s if self.alone_s else 1 / ratio["gpt"]
        return {
            "GPT iteration": iteration - 1,
            "GPT throughput": 1 / iteration - 1,
            "BERT throughput": ratio["bert"] - 1,
            "GPU utilisation": overall(self.beside, self.gpus) / overall(self.alone, self.gpus) - 1,
        }


def reproduce(settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return the paper's four changes beside ours, then the fluid model's for other uplinks and volumes."""
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = [Task(NAME, treatment, seed) for seed in seeds for treatment in (ECMP, ECMP_ALONE)]
    found = Runs(settings.out, redo=settings.redo, execute=execute).all(wanted, progress)
    measured = [pair for seed in seeds if (pair := _measured(seed, found))]
    progress.phase("fluid model")
    fluid = [_expected(seed) for seed in seeds]
    progress.phase("flow engine, inputs chosen a priori")
    beforehand = [computed(seed, A_PRIORI) for seed in seeds]
    rows = [_row(label, measured, fluid, beforehand) for label in PAPER]
    rows[0] = replace(rows[0], note=not_ok(wanted, found), status=exit_status(found.values()))
    if measured:
        values = [pair.changes["GPT iteration"] for pair in measured]
        write_plot(lambda: slow_downs(values, PAPER["GPT iteration"]["change"]), settings.out, NAME)
    return [*rows, *_sensitivity(seeds)]


def computed(seed: int, inputs: FigureInputs) -> Pair | None:
    """The pair of ``seed`` by the flow engine with these inputs."""
    changed = (*ENOUGH, *overrides(NAME, inputs))
    tasks = (Task(NAME, treatment, seed) for treatment in (ECMP, ECMP_ALONE))
    return _pair(*(flow_entry(flow_experiment(task, *changed, twin=AS_PACKETS)) for task in tasks))


def _measured(seed: int, found: Mapping[Task, RunOutcome]) -> Pair | None:
    return _pair(*(found[Task(NAME, treatment, seed)].entry for treatment in (ECMP, ECMP_ALONE)))


def _pair(beside: Mapping[str, Any] | None, alone: Mapping[str, Any] | None) -> Pair | None:
    if not beside or not alone or not _iteration(beside) or not _iteration(alone):
        return None
    gpus = {job["name"]: int(job["gpus"]) for job in beside["jobs"]}
    return Pair(_utilizations(beside), _utilizations(alone), gpus, _iteration(beside), _iteration(alone))


def _utilizations(entry: Mapping[str, Any]) -> dict[str, float]:
    return {job["name"]: float(job["gpu_utilization"]) for job in entry["jobs"]}


def _iteration(entry: Mapping[str, Any]) -> float:
    return float(next(job["iteration_s"]["mean"] for job in entry["jobs"] if job["name"] == "gpt") or 0.0)


def _expected(seed: int, *overrides: str) -> Pair:
    """The same pair from the fluid model."""
    both = [
        prepare(NAME, overrides=[*treatment.overrides, *overrides], seed=seed).experiments[0]
        for treatment in (ECMP, ECMP_ALONE)
    ]
    gpus = {job.name: len(job.gpus) for job in both[0].jobs}
    return Pair(predict(both[0]), predict(both[1]), gpus)


def _row(label: str, measured: Sequence[Pair], fluid: Sequence[Pair], beforehand: Sequence[Pair | None]) -> PaperRow:
    here = _changes(label, measured)
    a_priori = _changes(label, [pair for pair in beforehand if pair])
    if measured and "alone_s" in PAPER[label]:
        here |= {
            "alone_s": fmean(pair.alone_s for pair in measured),
            "with_s": fmean(pair.beside_s for pair in measured),
        }
    here |= _fluid([pair.changes[label] for pair in fluid])
    return PaperRow(label, PAPER[label], here, calibrated_on=CALIBRATED_ON, a_priori=a_priori)


def _changes(label: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """The spread of a change over the seeds, and where the paper's draw lies in it; nothing without pairs."""
    values = [pair.changes[label] for pair in pairs]
    return _spread(values) | {"percentile": percentile(values, PAPER[label]["change"])} if values else {}


def percentile(values: Sequence[float], one: float) -> float:
    """Return which share of ``values`` is nearer to 0 than ``one``: the paper shows a single draw of a hash."""
    return fmean(float(abs(value) < abs(one)) for value in values)


def _spread(values: Sequence[float]) -> dict[str, float]:
    spread = {"spread": stdev(values)} if len(values) > 1 else {}
    return {"change": fmean(values), **spread, "min": min(values), "median": median(values), "max": max(values)}


def _fluid(values: Sequence[float]) -> dict[str, float]:
    return {f"fluid_{key}": value for key, value in _spread(values).items()}


def _sensitivity(seeds: Sequence[int]) -> list[PaperRow]:
    rows = [_tried(f"GPT iteration, {count} uplinks", seeds, f"fabric.aggregations={count // 2}") for count in UPLINKS]
    gpt, (hosts, nics) = CALIBRATED["crux-gpt"], LAYOUTS[NAME]["gpt"]
    for share in SHARES:
        size = allreduce_bytes(share * gpt.compute_s, hosts, nics, gpt.nic_rate)
        label = f"GPT iteration, communication {share:.2f} x compute"
        rows.append(_tried(label, seeds, f"jobs.gpt.communication={size / 1e9:.4g}GB"))
    return rows


def _tried(label: str, seeds: Sequence[int], override: str) -> PaperRow:
    values = [_expected(seed, override).changes["GPT iteration"] for seed in seeds]
    return PaperRow(label, {}, _fluid(values), calibrated_on=CALIBRATED_ON)
