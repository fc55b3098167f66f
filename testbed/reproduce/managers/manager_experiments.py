"""Experiments about cluster managers: of their papers, and of all managers side by side."""

from __future__ import annotations

from typing import Final

from testbed.reproduce.number_formats import (
    count,
    fine_percent,
    hours,
    hundredths,
    percent,
    tenths,
    thousandths,
    times,
    whole,
)
from testbed.reproduce.paper_experiment import Column, PaperExperiment

SCHEDULERS: Final = ("ecmp", "taccl-star", "sincronia", "crux-pa", "crux")
"""The communication schedulers of ``managers-x-schedulers``."""

EXPERIMENTS: Final = (
    PaperExperiment(
        name="tiresias-example",
        summary="Tiresias's example: mean completion times of three jobs under three policies",
        source="Gu et al., NSDI 2019, section 3",
        columns=tuple(
            Column(key, f"{key} paper" if paper else "here", hundredths, paper=paper)
            for key in ("one", "two", "three", "mean")
            for paper in (True, False)
        ),
        function="testbed.reproduce.managers.tiresias_example:reproduce",
    ),
    PaperExperiment(
        name="lyra-table",
        summary="loans from inference and elastic jobs: queueing and completion times against a cluster without",
        source="Li et al., EuroSys 2023, section 7 (simulation)",
        # Times against the baseline, larger is better; then seconds here.
        columns=(
            Column("jct_times", "JCT paper", times, paper=True),
            Column("jct_times", "here", times),
            Column("queue_times", "queue paper", times, paper=True),
            Column("queue_times", "here", times),
            Column("jct_mean_s", "JCT s", whole),
            Column("jct_p95_s", "p95", whole),
            Column("queue_mean_s", "queue s", whole),
            Column("queue_p95_s", "p95", whole),
            Column("preempted_share", "preempted %", percent),
        ),
        function="testbed.reproduce.managers.lyra_table:reproduce",
        days=14.0,
    ),
    PaperExperiment(
        name="philly-locality",
        summary="locality: 16 GPUs on 2 servers or 8, jobs split 3 + 1, 4 GPUs on one, two or four servers",
        source="Jeon et al., ATC 2019; step times published with Pollux, OSDI 2021",
        columns=(
            Column("utilization", "GPU util % paper", fine_percent, paper=True),
            Column("utilization", "here", fine_percent),
            Column("slow_down", "slow-down paper", times, paper=True),
            Column("slow_down", "here", times),
        ),
        function="testbed.reproduce.managers.philly_locality:reproduce",
        seeds=1,
    ),
    PaperExperiment(
        name="lina-step",
        summary="a mixture of experts: all-to-alls before gradients, against sharing evenly",
        source="Li et al., ATC 2023: training steps up to 1.73 times as fast",
        # Steps with gradients after all all-to-alls, concurrent at the same level, and concurrent at a lower level.
        columns=(
            Column("faster", "paper, up to", times, paper=True),
            Column("faster", "here", times),
            Column("after_s", "after s", thousandths),
            Column("evenly_s", "evenly s", thousandths),
            Column("first_s", "first s", thousandths),
        ),
        function="testbed.reproduce.managers.lina_step:reproduce",
        seeds=1,
    ),
    PaperExperiment(
        name="managers-on-packets",
        summary="every cluster manager on packets: fifteen jobs that come to 32 GPUs",
        source="no figure of a paper: that managers work on packets as they do on fluids",
        columns=(
            Column("utilization", "GPU util %", percent),
            Column("jct_mean_s", "JCT mean s", tenths),
            Column("jct_mean_s_flow", "flow", tenths),
            Column("jct_p95_s", "p95", tenths),
            Column("queue_mean_s", "queue s", tenths),
            Column("makespan_s", "all s", tenths),
            Column("makespan_s_flow", "flow", tenths),
            Column("allocated", "held %", percent),
            Column("preemptions", "stops", whole),
            Column("migrations", "migrations", whole),
            Column("hosts_per_job", "hosts", tenths),
            Column("unfinished", "open", whole),
        ),
        function="testbed.reproduce.managers.managers_on_packets:reproduce",
        seeds=1,
    ),
    PaperExperiment(
        name="managers-x-schedulers",
        summary="every cluster manager with every communication scheduler on one trace",
        source="no figure of a paper: the comparison that figure 25 of Cao et al. (SIGCOMM 2024) begins",
        # Utilisation of allocated GPUs under each scheduler; the other columns are with the last one, Crux.
        columns=(
            *(Column(name, f"{name} %", percent) for name in SCHEDULERS),
            Column("jct_mean_s", "JCT h", hours),
            Column("jct_p95_s", "p95", hours),
            Column("queue_mean_s", "queue h", hours),
            Column("preemptions", "preempted", count),
            Column("allocated", "allocated %", percent),
            Column("finished", "ended", count),
        ),
        function="testbed.reproduce.managers.managers_x_schedulers:reproduce",
        days=1.0,
    ),
)
