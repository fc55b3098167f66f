"""What Crux gains over ECMP on ``clos96``, as a mean over hash seeds: the numbers behind the main claim.

Targets: at least 8 points of GPU utilisation and a GPT job completion time at least 10 % shorter,
averaged over three seeds. The loss of each scheduler is taken apart into a job's own flows meeting
and other jobs' flows.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.common import Line, Run, bundled, doubts_of, judged, main, mean, percent, run
from testbed.metrics.summary import summary

TITLE: Final = "clos96: Crux against ECMP"
SEEDS: Final = (1, 2, 3)
POINTS: Final = 8.0
JCT_CHANGE: Final = -0.10
JOB: Final = "gpt"


def _seed_line(seed: int, document: dict[str, Any], runs: tuple[Run, Run]) -> Line:
    ecmp, crux = document["runs"]
    gained = document["comparison"]["crux"]
    split = gained["gain_split"]["run"]
    columns = {
        "seed": seed,
        "ecmp": f"{ecmp['gpu_utilization']:.1%}",
        "crux": f"{crux['gpu_utilization']:.1%}",
        "gain points": f"{gained['gpu_utilization_points']:+.1f}",
        "GPT JCT": percent(gained["jct_change"][JOB], 1),
        "by own flows": f"{split['own_points']:+.1f}" if split else "",
        "by other jobs": f"{split['others_points']:+.1f}" if split else "",
        "verdicts": ", ".join(made.record.fidelity.verdict for made in runs),
    }
    return Line(columns, note=doubts_of(*runs))


def measure(quick: bool) -> list[Line]:
    """Both schedulers under every seed; ``quick`` takes the first seed and few iterations."""
    scenario = bundled("clos96")
    if quick:
        scenario["measure"] = {"iterations": 3, "warmup": 1, "time_limit": "60s"}
    lines: list[Line] = []
    documents: list[dict[str, Any]] = []
    all_runs: list[Run] = []
    for seed in SEEDS[:1] if quick else SEEDS:
        runs = run(scenario, "ecmp", seed=seed), run(scenario, "crux", seed=seed)
        document = summary(runs[0].experiment, [made.record for made in runs])
        lines.append(_seed_line(seed, document, runs))
        documents.append(document)
        all_runs += runs
    return [*lines, _mean_line(documents, all_runs)]


def _mean_line(documents: list[dict[str, Any]], runs: list[Run]) -> Line:
    gains = [document["comparison"]["crux"] for document in documents]
    points = mean([gain["gpu_utilization_points"] for gain in gains])
    jct = mean([gain["jct_change"][JOB] for gain in gains])
    splits = [gain["gain_split"]["run"] for gain in gains if gain["gain_split"]["run"]]
    columns = {
        "seed": "mean",
        "ecmp": f"{mean([document['runs'][0]['gpu_utilization'] for document in documents]):.1%}",
        "crux": f"{mean([document['runs'][1]['gpu_utilization'] for document in documents]):.1%}",
        "gain points": f"{points:+.1f}",
        "GPT JCT": percent(jct, 1),
        "by own flows": f"{mean([split['own_points'] for split in splits]):+.1f}" if splits else "",
        "by other jobs": f"{mean([split['others_points'] for split in splits]):+.1f}" if splits else "",
    }
    outcome = judged(points >= POINTS and jct <= JCT_CHANGE, *runs)
    return Line(columns, ">= +8 points, GPT <= -10 %", outcome)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
