"""The figures of Crux (Cao et al., SIGCOMM 2024) that can be reproduced."""

from __future__ import annotations

from typing import Final

from testbed.reproduce.number_formats import (
    change,
    count,
    fine_percent,
    hundredths,
    percent,
    points,
    spread_points,
    tenths,
)
from testbed.reproduce.paper_experiment import PaperColumn, PaperExperiment

TRACE_DAYS: Final = 14.0
TRACE_SEEDS: Final = 2
FITTED_SEEDS: Final = 3
"""Of the figures whose inputs are fitted."""


def spreads(key: str) -> tuple[PaperColumn, PaperColumn]:
    """The columns with the spreads, in points, of the share ``key`` over seeds and over numerical settings."""
    return (
        PaperColumn(f"{key}_seed_spread", "seeds +-", spread_points),
        PaperColumn(f"{key}_numerical_spread", "numerics +-", spread_points),
    )


FIT_COLUMNS: Final = (
    PaperColumn("input", "input", hundredths),
    PaperColumn("value", "paper %", percent, paper=True),
    PaperColumn("value", "here %", percent),
    *spreads("value"),
)
"""Of a fit of one input: what was found, and what each value of it gives."""


def fit(name: str, summary: str, where: str, *columns: PaperColumn) -> PaperExperiment:
    """A fit of inputs of the trace figures: the function of its name in ``traces.calibration``."""
    return PaperExperiment(
        name=name,
        summary=summary,
        source=f"Cao et al., SIGCOMM 2024, {where}",
        columns=columns,
        function=f"testbed.reproduce.crux.traces.calibration:{name.removeprefix('crux-fit-')}",
        seeds=FITTED_SEEDS,
        days=TRACE_DAYS,
        channels=True,
    )


TESTBED_COLUMNS: Final = (
    PaperColumn("without", "ecmp paper", percent, paper=True),
    PaperColumn("without", "here", percent),
    PaperColumn("without_spread", "+-", percent),
    PaperColumn("without", "a priori", percent, a_priori=True),
    PaperColumn("crux", "crux paper", percent, paper=True),
    PaperColumn("crux", "here", percent),
    PaperColumn("crux_spread", "+-", percent),
    PaperColumn("crux_least", "fits as good: least", percent),
    PaperColumn("crux_most", "most", percent),
    PaperColumn("crux", "a priori", percent, a_priori=True),
    PaperColumn("ideal", "ideal paper", percent, paper=True),
    PaperColumn("ideal", "here", percent),
    PaperColumn("gain_points", "gain paper", points, paper=True),
    PaperColumn("gain_points", "here", points),
)
"""Of figures 19 to 22: GPU utilisation under ECMP, under Crux and of jobs alone."""

EXPERIMENTS: Final = (
    PaperExperiment(
        name="crux-fig4-6",
        summary="job sizes, concurrency and shared links of the trace",
        source="Cao et al., SIGCOMM 2024, section 2.2, figures 4 to 6",
        columns=(
            PaperColumn("value", "paper", lambda value: f"{value:g}", paper=True),
            *(
                PaperColumn(key, title, lambda value: f"{value:.3g}" if value < 1 else f"{value:.1f}")
                for key, title in (
                    ("value", "here"),
                    ("value_seed_spread", "seeds +-"),
                    ("value_numerical_spread", "numerics +-"),
                )
            ),
            PaperColumn("value", "a priori", lambda value: f"{value:.3g}", a_priori=True),
        ),
        function="testbed.reproduce.crux.trace_figures:figures_4_to_6",
        seeds=FITTED_SEEDS,
        days=TRACE_DAYS,
        channels=True,
    ),
    PaperExperiment(
        name="crux-fig7",
        summary="GPT on 64 GPUs with and without BERT on 16 under the same two ToRs, under ECMP",
        source="Cao et al., SIGCOMM 2024, section 2.2, figure 7",
        columns=(
            PaperColumn("change", "paper %", change, paper=True),
            PaperColumn("change", "here %", change),
            PaperColumn("change", "a priori %", change, a_priori=True),
            PaperColumn("spread", "+-", percent),
            PaperColumn("min", "min", change),
            PaperColumn("median", "median", change),
            PaperColumn("max", "max", change),
            PaperColumn("percentile", "paper's percentile", percent),
            PaperColumn("fluid_change", "fluid %", change),
            PaperColumn("fluid_min", "min", change),
            PaperColumn("fluid_median", "median", change),
            PaperColumn("fluid_max", "max", change),
        ),
        function="testbed.reproduce.crux.figure_7:reproduce",
        seeds=20,
    ),
    PaperExperiment(
        name="crux-fig16",
        summary="each mechanism of Crux against the optimum of small generated cases",
        source="Cao et al., SIGCOMM 2024, section 4.4, figure 16",
        columns=(
            PaperColumn("performance", "paper %", fine_percent, paper=True),
            PaperColumn("performance", "a priori", fine_percent, a_priori=True),
            PaperColumn("performance", "here %", fine_percent),
            PaperColumn("spread", "+-", fine_percent),
            PaperColumn("of_range", "range %", fine_percent),
            PaperColumn("median_error", "p50 err", fine_percent),
            PaperColumn("p90_error", "p90", fine_percent),
            PaperColumn("max_error", "max", fine_percent),
            PaperColumn("optimal", "opt %", fine_percent),
        ),
        function="testbed.reproduce.crux.figure_16:reproduce",
        cases=1500,
    ),
    PaperExperiment(
        name="crux-calibration",
        summary="inputs of figures 19 to 22 fitted to their bars without Crux, by the flow engine",
        source="Cao et al., SIGCOMM 2024, section 6.2, figures 19 to 22: the bars without Crux",
        columns=(
            PaperColumn("without", "ecmp paper", percent, paper=True),
            PaperColumn("without", "here", percent),
            PaperColumn("bert_overlap", "overlap BERT", hundredths),
            PaperColumn("resnet_overlap", "ResNet", hundredths),
            PaperColumn("gpt_hidden_share", "GPT hidden", hundredths),
            PaperColumn("channels", "channels", count),
            PaperColumn("resnet_compute_s", "ResNet compute, s", hundredths),
            PaperColumn("error_points", "error, points", hundredths),
        ),
        function="testbed.reproduce.crux.inputs.input_fit:reproduce",
    ),
    PaperExperiment(
        name="crux-slowdowns",
        summary="figures 21 and 22: how much longer than alone each kind of job takes, and how near any inputs come",
        source="Cao et al., SIGCOMM 2024, section 6.2, figures 21 and 22",
        columns=(
            *(
                PaperColumn(key, f"{title} paper" if paper else "here", change, paper=paper)
                for key, title in (
                    ("bert_without", "BERT, ecmp:"),
                    ("bert_crux", "crux:"),
                    ("resnet_without", "ResNet, ecmp:"),
                    ("resnet_crux", "crux:"),
                )
                for paper in (True, False)
            ),
            PaperColumn("nearest_without", "nearest inputs: ecmp", points),
            PaperColumn("nearest_crux", "crux", points),
        ),
        function="testbed.reproduce.crux.implied_slowdowns:reproduce",
    ),
    PaperExperiment(
        name="crux-fig19",
        summary="GPT and two to four BERT on the testbed, contending in the network",
        source="Cao et al., SIGCOMM 2024, section 6.2, figure 19",
        columns=TESTBED_COLUMNS,
        function="testbed.reproduce.crux.figures_19_to_22:figure_19",
        seeds=3,
    ),
    PaperExperiment(
        name="crux-fig20",
        summary="GPT, BERT and ResNet on all 96 GPUs of the testbed, contending in the network",
        source="Cao et al., SIGCOMM 2024, section 6.2, figure 20",
        columns=TESTBED_COLUMNS,
        function="testbed.reproduce.crux.figures_19_to_22:figure_20",
        seeds=3,
    ),
    PaperExperiment(
        name="crux-fig21",
        summary="BERT and one to three ResNet behind the same PCIe switches",
        source="Cao et al., SIGCOMM 2024, section 6.2, figure 21",
        columns=TESTBED_COLUMNS,
        function="testbed.reproduce.crux.figures_19_to_22:figure_21",
        seeds=3,
    ),
    PaperExperiment(
        name="crux-fig22",
        summary="ResNet and BERT of three sizes behind the same PCIe switches",
        source="Cao et al., SIGCOMM 2024, section 6.2, figure 22",
        columns=TESTBED_COLUMNS,
        function="testbed.reproduce.crux.figures_19_to_22:figure_22",
        seeds=3,
    ),
    PaperExperiment(
        name="crux-fig23",
        summary="six schedulers over two weeks of trace on two fabrics",
        source="Cao et al., SIGCOMM 2024, section 6.3, figure 23",
        columns=(
            PaperColumn("utilization", "paper %", percent, paper=True),
            PaperColumn("utilization", "here %", percent),
            *spreads("utilization"),
            PaperColumn("distance", "off", tenths),
            PaperColumn("utilization", "a priori %", percent, a_priori=True),
            PaperColumn("points", "against crux", points, spread="points_spread"),
            PaperColumn("time_mean", "over time %", percent),
            PaperColumn("sharing_gpus", "sharing %", percent),
        ),
        function="testbed.reproduce.crux.trace_figures:figure_23",
        seeds=FITTED_SEEDS,
        days=TRACE_DAYS,
        channels=True,
    ),
    PaperExperiment(
        name="crux-fig24",
        summary="utilisation over time and what link classes carry, six schedulers on Clos",
        source="Cao et al., SIGCOMM 2024, section 6.3, figure 24",
        columns=(
            *(
                PaperColumn(key, f"{title} {side}", percent, paper=side == "paper")
                for key, title in (
                    ("mean", "12 days"),
                    ("first_day", "day 1"),
                    ("solid", ".7-1.6"),
                    ("dashed", "3.9-5.8"),
                )
                for side in ("paper", "here")
            ),
            # Of the twelve days.
            *spreads("mean"),
            PaperColumn("mean", "a priori", percent, a_priori=True),
            PaperColumn("points", "against crux", points, spread="points_spread"),
        ),
        function="testbed.reproduce.crux.trace_figures:figure_24",
        seeds=FITTED_SEEDS,
        days=TRACE_DAYS,
        channels=True,
    ),
    PaperExperiment(
        name="crux-fig25",
        summary="placements None, Muri and HiveD without and with Crux",
        source="Cao et al., SIGCOMM 2024, section 6.4, figure 25",
        columns=(
            PaperColumn("alone", "alone paper %", percent, paper=True),
            PaperColumn("alone", "ecmp %", percent),
            PaperColumn("sincronia", "sincronia %", percent),
            PaperColumn("crux", "+ Crux paper %", percent, paper=True),
            PaperColumn("crux", "here %", percent),
            *spreads("crux"),
            PaperColumn("alone", "a priori: alone", percent, a_priori=True),
            PaperColumn("crux", "+ Crux", percent, a_priori=True),
            PaperColumn("gain_points", "gain paper", lambda value: f"{value:+.0f}", paper=True),
            PaperColumn("gain_points", "here", points, spread="gain_points_spread"),
        ),
        function="testbed.reproduce.crux.trace_figures:figure_25",
        seeds=FITTED_SEEDS,
        days=TRACE_DAYS,
        channels=True,
    ),
    fit(
        "crux-fit-production",
        "scatter and volumes together: one replay without Crux shows figure 6 and the bar None",
        "section 2.2, figure 6, and section 6.4, figure 25, bar None",
        PaperColumn("input", "input", hundredths),
        PaperColumn("volume", "volume", hundredths),
        PaperColumn("value", "sharing paper %", percent, paper=True),
        PaperColumn("value", "here %", percent),
    ),
    fit(
        "crux-fit-placement",
        "how many jobs give up locality, fitted to the share of jobs that share a link",
        "section 2.2, figure 6",
        *FIT_COLUMNS,
    ),
    fit(
        "crux-fit-volume",
        "a factor on the volumes of all jobs, fitted to the utilisation without a scheduler",
        "section 6.4, figure 25, bar None",
        *FIT_COLUMNS,
    ),
)
