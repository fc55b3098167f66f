"""What schedulers are worth to the jobs of today: four large models in training on 256 H100, rates computed.

Fabrics: rails with as much above the ToRs as below and with half of it, Alibaba's HPN with half of it, and a Clos
without rails with half of it. Placements: jobs on neighbouring hosts, one after the other; and on hosts that were
drawn, as a cluster has them free after jobs have come and gone. A pipeline's stages and a tensor group keep their hosts
whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from testbed.api import prepare
from testbed.engines.flow.alone import with_alone
from testbed.engines.registry import create_engine
from testbed.errors import BadInputError
from testbed.machine.process_pool import started
from testbed.metrics.summary import summary
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from testbed.reproduce.training.today_plot import gains
from topologies.input.spelling import expectation

HOSTS: Final = 32
_HOST: Final[Mapping[str, Any]] = {"hosts": HOSTS, "gpus_per_host": 8, "nics_per_host": 8, "segments": 2}
FABRICS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rails 1:1": {"kind": "rail-optimized", **_HOST, "aggregations": 16},
    "rails 2:1": {"kind": "rail-optimized", **_HOST, "aggregations": 8},
    "HPN 2:1": {"kind": "hpn", **_HOST, "aggregations": 8},
    "no rails 2:1": {"kind": "dcn+", **_HOST, "aggregations": 64},
}
"""Of 16 hosts a segment: 16 cables of 400 Gbit/s go down from a ToR of a rail, and as many or half of them up. HPN has
two ports of 200 Gbit/s per NIC, to two ToRs in two planes. Without rails 128 cables go down from one ToR, and 64 up."""
SCHEDULERS: Final[Mapping[str, str]] = {
    "ecmp": "ecmp",
    "crux": "crux",
    "cassini": "cassini",
    "sincronia": "sincronia",
    "spray": "{name: ecmp, label: spray, load_balancing: spray}",
}
"""Column -> the scheduler as a scenario has it."""
JOBS: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "name": "dense", "model": "llama3-70b", "gpus": 128, "parallel": {"tensor": 8, "pipeline": 4},
        "microbatches": 16, "schedule": {"name": "interleaved", "chunks": 2}, "sequence": 8192,
    },
    {
        "name": "mixture", "model": "qwen3-235b", "gpus": 64, "parallel": {"tensor": 2, "expert": 32},
        "microbatches": 4, "precision": "fp8",
    }, {"name": "mixture-small", "model": "mixtral-8x7b", "gpus": 32, "parallel": {"tensor": 2, "expert": 8},
    "microbatches": 4}, {"name": "fine-tune", "model": "llama3-8b", "gpus": 32, "sharding": "zero-3", "microbatches":
    2},
)  # fmt: skip
PLACEMENTS: Final = ("packed", "drawn")
_MEASURE: Final = {"iterations": 4, "warmup": 1, "time_limit": "120s"}


@dataclass(frozen=True, slots=True)
class Case:
    """A scheduler for the jobs, placed so, on a fabric."""

    fabric: str
    placement: str
    scheduler: str
    seed: int


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per fabric and placement; ``BadInputError`` if ``--row`` names none."""
    rows = _chosen(settings)
    cases = [case for row in rows.values() for case in row]
    progress.phase(f"{len(cases)} runs", len(cases))
    found: dict[Case, Mapping[str, Any]] = {}
    with started(settings.processes, lambda pool: pool.map(computed, cases)) as results:
        for case, entry in zip(cases, results, strict=True):
            found[case] = entry
            progress.advance_to(len(found))
    made = [_row(label, row, found) for label, row in rows.items()]
    write_plot(lambda: gains(made, tuple(SCHEDULERS)), settings.out, "today")
    return made


def rows_of(seed: int) -> dict[str, tuple[Case, ...]]:
    """Label -> the runs of its columns."""
    return {
        f"{fabric}, {placement}": tuple(Case(fabric, placement, scheduler, seed) for scheduler in SCHEDULERS)
        for fabric in FABRICS
        for placement in PLACEMENTS
    }


def _chosen(settings: Settings) -> dict[str, tuple[Case, ...]]:
    rows = rows_of(settings.seed)
    for name in settings.only:
        if name not in rows:
            raise BadInputError(f"--row {name}: no such row, {expectation(name, tuple(rows))}")
    return {label: row for label, row in rows.items() if not settings.only or label in settings.only}


def scenario_of(case: Case) -> dict[str, Any]:
    """The scenario of ``case``."""
    hosts = [f"h{number}" for number in range(HOSTS)]
    if case.placement == "drawn":
        random.Random(f"today {case.seed}").shuffle(hosts)
    return {
        "name": "today",
        "fabric": dict(FABRICS[case.fabric]),
        "channels": 1,
        "jobs": list(_placed(hosts)),
        "schedulers": [yaml.safe_load(SCHEDULERS[case.scheduler])],
        "measure": _MEASURE,
        "seed": case.seed,
    }


def _placed(hosts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The jobs on ``hosts``, one after the other."""
    first = 0
    for job in JOBS:
        count = job["gpus"] // 8
        yield {
            **{key: value for key, value in job.items() if key != "gpus"},
            "placement": list(hosts[first : first + count]),
        }
        first += count


def computed(case: Case) -> Mapping[str, Any]:
    """The entry of a run of ``case`` in a summary, with what each job loses alone."""
    with TemporaryDirectory(prefix="today-") as folder:
        path = Path(folder) / "today.yaml"
        path.write_text(yaml.safe_dump(scenario_of(case)))
        (experiment,) = prepare(path, engine="flow").experiments
        record = create_engine("flow").run(experiment, Path(folder), lambda _message: None)
        entry: Mapping[str, Any] = summary(experiment, [with_alone(record, experiment)])["runs"][0]
    return entry


def _row(label: str, row: Sequence[Case], found: Mapping[Case, Mapping[str, Any]]) -> PaperRow:
    here = {case.scheduler: float(found[case]["gpu_utilization"]) for case in row}
    plain = found[row[0]]
    here |= {key: plain["loss"][f"{key}_points"] for key in ("alone", "own", "others")}
    hit = [f"{job['name']} {job['loss']['own_points'] + job['loss']['others_points']:.1f}" for job in plain["jobs"]]
    best = max(found[case]["gpu_utilization"] for case in row)
    here["gain"] = 100 * (best - here["ecmp"])
    return PaperRow(label, {}, here, f"points lost to contention under ecmp: {', '.join(hit)}")
