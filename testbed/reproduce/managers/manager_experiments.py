"""Experiments about cluster managers: of their papers, and of all managers side by side."""

from __future__ import annotations

from typing import Final

from testbed.reproduce.number_formats import (
    count,
    fine_change,
    fine_percent,
    hours,
    hundredths,
    milliseconds,
    percent,
    points,
    spread_points,
    tenths,
    thousandths,
    times,
    whole,
)
from testbed.reproduce.paper_experiment import PaperColumn, PaperExperiment

SCHEDULERS: Final = ("ecmp", "taccl-star", "sincronia", "crux-pa", "crux")
"""The communication schedulers of ``managers-x-schedulers``; the first is the reference of the others."""

EXPERIMENTS: Final = (
    PaperExperiment(
        name="tiresias-example",
        summary="Tiresias's example: mean completion times of three jobs under three policies",
        source="Gu et al., NSDI 2019, section 3",
        columns=tuple(
            PaperColumn(key, f"{key} paper" if paper else "here", hundredths, paper=paper)
            for key in ("one", "two", "three", "mean")
            for paper in (True, False)
        ),
        function="testbed.reproduce.managers.tiresias_example:reproduce",
    ),
    PaperExperiment(
        name="manager-oracles",
        summary="Tiresias, Optimus, SRTF and SRSF beside the simulators of their authors; --traces: where those are",
        source="simulators of Pollux (OSDI 2021) and Muri (SIGCOMM 2022)",
        # Mean completion times in seconds, and how many jobs ended.
        columns=(
            PaperColumn("jct_s", "JCT artifact s", milliseconds, paper=True),
            PaperColumn("jct_s", "here", milliseconds),
            PaperColumn("difference", "difference %", fine_change),
            PaperColumn("exact_s", "told the truth s", milliseconds),
            PaperColumn("jobs", "jobs", count, paper=True),
            PaperColumn("jobs", "here", count),
        ),
        function="testbed.reproduce.managers.oracles.manager_oracles:reproduce",
        artifacts=True,
    ),
    PaperExperiment(
        name="lyra-table",
        summary="loans from inference and elastic jobs: completion times, queueing, usage against a cluster without",
        source="Li et al., EuroSys 2023, section 7 (simulation)",
        # Times against the baseline, larger is better; the seconds are in the JSON document.
        columns=(
            *(
                PaperColumn(f"{what}_{measure}_times", title if paper else "here", times, paper=paper)
                for what, measure, title in (
                    ("jct", "mean", "JCT mean paper"),
                    ("jct", "p50", "p50 paper"),
                    ("jct", "p95", "p95 paper"),
                    ("queue", "mean", "queue mean paper"),
                    ("queue", "p50", "p50 paper"),
                    ("queue", "p95", "p95 paper"),
                )
                for paper in (True, False)
            ),
            *(
                PaperColumn(key, f"{title} % paper" if paper else "here", percent, paper=paper)
                for key, title in (
                    ("usage_training", "training used"),
                    ("usage_overall", "all used"),
                    ("preempted_share", "preempted"),
                )
                for paper in (True, False)
            ),
            PaperColumn("jct_mean_times", "JCT a priori", times, a_priori=True),
        ),
        function="testbed.reproduce.managers.lyra_table:reproduce",
        days=14.0,
    ),
    PaperExperiment(
        name="lyra-replay",
        summary="Lyra's loans of slower GPUs in a replay, beside communication schedulers",
        source="no figure of a paper: Lyra (EuroSys 2023) on the Clos of Cao et al. (SIGCOMM 2024)",
        # Differences to the first row are under the same scheduler.
        columns=(
            *(
                column
                for scheduler in ("ecmp", "crux")
                for column in (
                    PaperColumn(f"{scheduler}_utilization", f"{scheduler} GPU util %", percent),
                    PaperColumn(f"{scheduler}_utilization_seed_spread", "seeds +-", spread_points),
                    PaperColumn(f"{scheduler}_utilization_numerical_spread", "numerics +-", spread_points),
                    PaperColumn(
                        f"{scheduler}_loans_points", "to row 1", points, spread=f"{scheduler}_loans_points_spread"
                    ),
                    PaperColumn(f"{scheduler}_jct_mean_s", "JCT s", whole),
                    PaperColumn(f"{scheduler}_queue_mean_s", "queue s", whole),
                    PaperColumn(f"{scheduler}_preemptions", "stops", count),
                    PaperColumn(f"{scheduler}_migrations", "migrations", count),
                )
            ),
            PaperColumn("crux_points", "crux - ecmp", points, spread="crux_points_spread"),
        ),
        function="testbed.reproduce.managers.lyra_replay:reproduce",
        seeds=2,
        days=2.0,
    ),
    PaperExperiment(
        name="philly-failures",
        summary="failures and what is done about them: retries, pre-runs, blacklists, epochs that do not matter",
        source="Jeon et al., ATC 2019, sections 4 and 5",
        # What a treatment uses, and what it saves against four retries; then the causes.
        columns=(
            PaperColumn("gpu_hours", "GPU h", whole),
            PaperColumn("saved_gpu_hours", "saved %", percent),
            PaperColumn("jct_mean_s", "JCT s", whole),
            PaperColumn("saved_jct_mean_s", "saved %", percent),
            PaperColumn("queue_mean_s", "queue s", whole),
            PaperColumn("saved_queue_mean_s", "saved %", percent),
            PaperColumn("failed_attempts", "failed", count),
            PaperColumn("unsuccessful_share", "bad jobs % paper", percent, paper=True),
            PaperColumn("unsuccessful_share", "here", percent),
            PaperColumn("lost_gpu_share", "lost GPU time % paper", percent, paper=True),
            PaperColumn("lost_gpu_share", "here", percent),
            PaperColumn("failed_share", "failures %", percent),
            PaperColumn("failed_gpu_share", "GPU time %", percent),
            PaperColumn("to_failure_p50_s", "s to failure", count),
        ),
        function="testbed.reproduce.managers.philly_failures:reproduce",
        days=14.0,
    ),
    PaperExperiment(
        name="philly-locality",
        summary="locality: 16 GPUs on 2 servers or 8, jobs split 3 + 1, 4 GPUs on one, two or four servers",
        source="Jeon et al., ATC 2019; step times published with Pollux, OSDI 2021",
        columns=(
            PaperColumn("utilization", "GPU util % paper", fine_percent, paper=True),
            PaperColumn("utilization", "here", fine_percent),
            PaperColumn("slow_down", "slow-down paper", times, paper=True),
            PaperColumn("slow_down", "here", times),
        ),
        function="testbed.reproduce.managers.philly_locality:reproduce",
        seeds=1,
    ),
    PaperExperiment(
        name="lina-step",
        summary="a mixture of experts: all-to-alls before gradients, in micro-ops, against sharing evenly; computed",
        source="Li et al., ATC 2023: training steps up to 1.73 times as fast",
        # Steps with gradients after all all-to-alls, concurrent at the same level, and concurrent at a lower level;
        # with that and micro-ops. Lina's factors: against evenly, with priority alone, against after.
        columns=(
            PaperColumn("faster", "paper, up to", times, paper=True),
            PaperColumn("faster", "here", times),
            PaperColumn("faster_first", "priority alone", times),
            PaperColumn("faster_than_after", "than after", times),
            PaperColumn("after_s", "after s", thousandths),
            PaperColumn("evenly_s", "evenly s", thousandths),
            PaperColumn("first_s", "first s", thousandths),
            PaperColumn("pipelined_s", "micro-ops s", thousandths),
        ),
        function="testbed.reproduce.managers.lina_step:reproduce",
    ),
    PaperExperiment(
        name="lina-inference",
        summary="inference of a mixture whose experts are not equally popular: GPUs by popularity, against evenly",
        source="Li et al., ATC 2023: 1.63 times at the 95th percentile, 1.45 at the median",
        columns=(
            PaperColumn("p95_times", "p95 paper", times, paper=True),
            PaperColumn("p95_times", "here", times),
            PaperColumn("median_times", "median paper", times, paper=True),
            PaperColumn("median_times", "here", times),
            PaperColumn("estimated_p95_times", "p95 by estimate alone", times),
            PaperColumn("estimated_median_times", "median", times),
            PaperColumn("even_p95_s", "even p95 s", thousandths),
            PaperColumn("even_median_s", "median s", thousandths),
            PaperColumn("lina_p95_s", "Lina p95 s", thousandths),
            PaperColumn("lina_median_s", "median s", thousandths),
            PaperColumn("placed_anew", "placed anew %", percent),
        ),
        function="testbed.reproduce.managers.lina_inference:reproduce",
        cases=100,
    ),
    PaperExperiment(
        name="managers-on-packets",
        summary="every cluster manager on packets: fifteen jobs that come to 32 GPUs",
        source="no figure of a paper: that managers work on packets as they do on fluids",
        columns=(
            PaperColumn("utilization", "GPU util %", percent),
            PaperColumn("jct_mean_s", "JCT mean s", tenths),
            PaperColumn("jct_mean_s_flow", "flow", tenths),
            PaperColumn("jct_p95_s", "p95", tenths),
            PaperColumn("queue_mean_s", "queue s", tenths),
            PaperColumn("makespan_s", "all s", tenths),
            PaperColumn("makespan_s_flow", "flow", tenths),
            PaperColumn("allocated", "held %", percent),
            PaperColumn("preemptions", "stops", whole),
            PaperColumn("migrations", "migrations", whole),
            PaperColumn("hosts_per_job", "hosts", tenths),
            PaperColumn("unfinished", "open", whole),
        ),
        function="testbed.reproduce.managers.managers_on_packets:reproduce",
        seeds=1,
    ),
    PaperExperiment(
        name="managers-x-schedulers",
        summary="every cluster manager with every communication scheduler on one trace",
        source="no figure of a paper: the comparison that figure 25 of Cao et al. (SIGCOMM 2024) begins",
        # Utilisation of allocated GPUs under the first scheduler, with spreads; the others against it, under the same
        # manager; the other columns are with the last one, Crux.
        columns=(
            PaperColumn(SCHEDULERS[0], f"{SCHEDULERS[0]} %", percent),
            PaperColumn(f"{SCHEDULERS[0]}_seed_spread", "seeds +-", spread_points),
            PaperColumn(f"{SCHEDULERS[0]}_numerical_spread", "numerics +-", spread_points),
            *(PaperColumn(f"{name}_points", name, points, spread=f"{name}_points_spread") for name in SCHEDULERS[1:]),
            PaperColumn("jct_mean_s", "JCT h", hours),
            PaperColumn("queue_mean_s", "queue h", hours),
            PaperColumn("preemptions", "stops", count),
            PaperColumn("allocated", "held %", percent),
        ),
        function="testbed.reproduce.managers.managers_x_schedulers:reproduce",
        seeds=2,
        days=14.0,
        rows=True,
    ),
)
