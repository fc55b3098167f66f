"""All experiments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from testbed.errors import BadInputError
from testbed.reproduce.crux import crux_figures
from testbed.reproduce.managers import manager_experiments
from testbed.reproduce.number_formats import change, count, hundredths, number, percent, points, tenths
from testbed.reproduce.paper_experiment import PaperColumn, PaperExperiment
from topologies.input.spelling import expectation

TWIN: Final = PaperExperiment(
    name="twin",
    summary="the flow engine against the emulation: every bundled scenario, every scheduler",
    source="no paper: targets are 1.5 points of GPU utilisation and 3 % of any job's iteration",
    columns=(
        PaperColumn("emulation", "emulated %", percent),
        PaperColumn("flow", "flow %", percent),
        PaperColumn("points", "points", lambda value: f"{value:+.2f}"),
        PaperColumn("iteration_error", "worst iteration %", change),
        PaperColumn("moved_points", "starts moved", lambda value: f"{value:+.2f}"),
        PaperColumn("moved_iteration_error", "worst", change),
        PaperColumn("moved_range", "range %", percent),
        PaperColumn("proportional_points", "by windows", lambda value: f"{value:+.2f}"),
        PaperColumn("proportional_iteration_error", "worst", change),
        PaperColumn("max_min_points", "max-min", lambda value: f"{value:+.2f}"),
        PaperColumn("max_min_iteration_error", "worst", change),
    ),
    function="testbed.reproduce.twin_comparison:reproduce",
    seeds=1,
)

TRANSPORTS: Final = PaperExperiment(
    name="transports",
    summary="schedulers on the network of an emulation and on those of RDMA clusters, every packet simulated",
    source="no paper: what congestion control, pauses and spraying change; two rows at line rate take hours",
    columns=(
        *(
            PaperColumn(network, f"{network} %", percent)
            for network in (
                *("window", "unlimited", "dcqcn", "hpcc", "spray", "flowlet", "adaptive"),
                *("go-back-n", "selective-repeat", "lossy spray", "lossy adaptive"),
            )
        ),
        PaperColumn("held", "unlimited: held s", lambda value: f"{value:.1f}"),
        PaperColumn("victims", "not to blame %", percent),
        PaperColumn("marked", "dcqcn: marked %", percent),
        PaperColumn("pauses", "pauses", count),
        PaperColumn("out_of_order", "spray: out of order %", percent),
        PaperColumn("dropped", "go-back-n: dropped", count),
    ),
    function="testbed.reproduce.transports:reproduce",
    rows=True,
)

TRAINING: Final = PaperExperiment(
    name="training",
    summary="iterations of published training runs of large models, from shape, layout and data sheet",
    source="Narayanan et al., SC'21, table 1; Jiang et al., NSDI'24, table 2; Llama 3, table 4; DeepSeek-V3, table 1",
    columns=(
        PaperColumn("value", "paper", number, paper=True),
        PaperColumn("value", "here", number),
        PaperColumn("error", "%", change),
        PaperColumn("mfu", "MFU %", percent),
        PaperColumn("bubble", "bubble %", percent),
        PaperColumn("seconds", "iteration s", hundredths),
    ),
    function="testbed.reproduce.training.published_runs:reproduce",
)

TODAY: Final = PaperExperiment(
    name="today",
    summary="schedulers for four large models in training, by fabric and placement: 256 GPUs, rates computed",
    source="no paper: which of today's jobs contend, where, and what paths, levels and placement are worth to them",
    columns=(
        *(PaperColumn(name, f"{name} %", percent) for name in ("ecmp", "crux", "cassini", "sincronia", "spray")),
        PaperColumn("gain", "best", points),
        PaperColumn("alone", "ecmp: alone", tenths),
        PaperColumn("own", "own", tenths),
        PaperColumn("others", "others", tenths),
    ),
    function="testbed.reproduce.training.today:reproduce",
    rows=True,
)

EXPERIMENTS: Final[Mapping[str, PaperExperiment]] = {
    each.name: each
    for each in (*crux_figures.EXPERIMENTS, *manager_experiments.EXPERIMENTS, TWIN, TRANSPORTS, TRAINING, TODAY)
}


def names() -> tuple[str, ...]:
    """The names of all experiments, in alphabetical order."""
    return tuple(sorted(EXPERIMENTS))


def find(name: str) -> PaperExperiment:
    """Return the experiment called ``name``; :class:`~testbed.errors.BadInputError` if there is none."""
    if name not in EXPERIMENTS:
        raise BadInputError(f"unknown experiment '{name}', {expectation(name, names())}")
    return EXPERIMENTS[name]
