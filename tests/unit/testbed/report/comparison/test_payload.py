from __future__ import annotations

import json
from pathlib import Path

import pytest

import testbed
from testbed.report.comparison import page
from testbed.report.comparison.compared_runs import collect
from testbed.report.comparison.distributions import iteration_times, link_loads, shape
from testbed.report.comparison.headline import headline
from testbed.report.comparison.payload import document, groups


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory) -> list[Path]:
    out = tmp_path_factory.mktemp("runs")
    return [testbed.run("hello", engine="flow", seed=seed, out=out).directory for seed in (1, 2, 3)]


def row(scheduler: str, seed: int, utilization: float, **other) -> dict:
    settings = {"settings": [], "scenario": "x", "engine": "flow", "verdict": "ok", "idle": [0.1, 0.0, 0.0]}
    numbers = {"gpu_utilization": utilization, "gpu_utilization_points": None, "mean_jct_s": 10.0}
    found = {"scheduler": scheduler, "seed": seed, "baseline": "ecmp", **settings, **numbers, **other}
    points = found["gpu_utilization_points"]
    return {"baseline_gpu_utilization": None if points is None else found["gpu_utilization"] - points / 100, **found}


def test_a_group_has_mean_and_interval_over_its_seeds() -> None:
    (group,) = groups([row("crux", seed, value) for seed, value in ((1, 0.5), (2, 0.6), (3, 0.7))])
    found = group["metrics"]["gpu_utilization"]
    assert (found["n"], found["mean"]) == (3, pytest.approx(0.6))
    assert found["half"] == pytest.approx(4.303 * 0.1 / 3**0.5)
    assert found["values"] == [[1, 0.5, "50.0"], [2, 0.6, "60.0"], [3, 0.7, "70.0"]]


def test_runs_with_the_same_seed_are_one_sample() -> None:
    (group,) = groups([row("crux", 1, 0.5), row("crux", 1, 0.7)])
    assert (group["runs"], group["metrics"]["gpu_utilization"]["n"]) == (2, 1)
    assert group["metrics"]["gpu_utilization"]["half"] is None
    assert group["metrics"]["gpu_utilization"]["mean"] == pytest.approx(0.6)


def test_a_group_without_all_its_values_has_no_mean() -> None:
    (group,) = groups([row("crux", 1, 0.5), row("crux", 2, 0.5, mean_jct_s=None)])
    assert group["metrics"]["mean_jct_s"] is None


def test_other_parameters_are_other_groups() -> None:
    found = groups([row("crux", 1, 0.5, settings=["a"]), row("crux", 1, 0.7, settings=["b"])])
    assert [group["settings"] for group in found] == [["a"], ["b"]]


def test_the_numbers_of_the_page_are_those_of_the_runs(three_seeds, tmp_path: Path) -> None:
    shown = document(collect(three_seeds), tmp_path)
    summaries = [testbed.load(directory).summary for directory in three_seeds]
    own = [run["gpu_utilization"] for summary in summaries for run in summary["runs"]]
    assert [each["gpu_utilization"] for each in shown["runs"]] == own
    assert shown["groups"][1]["metrics"]["gpu_utilization_points"]["n"] == 3
    assert {(each["scheduler"], each["of"]) for each in shown["iterations"]} == {
        (scheduler, job) for scheduler in ("ecmp", "crux") for job in ("big", "small")
    }
    assert all(each["link"].startswith("./") for each in shown["runs"])


def test_iteration_times_are_those_of_the_summary(three_seeds) -> None:
    run = testbed.load(three_seeds[0])
    for entry in run.summary["runs"]:
        times = iteration_times(run.records[entry["scheduler"]])
        for job in entry["jobs"]:
            assert shape(times[job["name"]])["mean"] == pytest.approx(job["iteration_s"]["mean"])
            assert shape(times[job["name"]])["quantiles"][3] == pytest.approx(job["iteration_s"]["p50"])


def test_loads_count_idle_links_too(records, experiment) -> None:
    loads = link_loads(records[0], experiment)
    assert sum(map(len, loads.values())) == len(experiment.fabric.network_links)
    assert loads["tor-agg"] == [pytest.approx(8 * 8e9 / 200e9)] * 8


def test_quantiles_lie_between_the_values() -> None:
    assert shape([3.0, 1.0, 2.0])["quantiles"] == pytest.approx([1.0, 1.1, 1.5, 2.0, 2.5, 2.9, 3.0])
    assert shape([7.0])["quantiles"] == [7.0] * 7


def test_the_headline_ranks_schedulers_and_says_how_sure_it_is() -> None:
    sure = [row(name, seed, base + 0.01 * seed) for name, base in (("ecmp", 0.5), ("crux", 0.8)) for seed in (1, 2, 3)]
    said = headline({"groups": groups(sure), "run_count": 3, "row_count": 6, "missing": []})
    assert said.startswith("3 runs of x. GPU utilisation: crux 82.0 \N{PLUS-MINUS SIGN} 2.5 % and ecmp 52.0")
    assert said.endswith("intervals of crux and ecmp do not overlap.")
    close = [row(name, seed, base + 0.1 * seed) for name, base in (("ecmp", 0.5), ("crux", 0.51)) for seed in (1, 2)]
    assert "overlap: more seeds" in headline({"groups": groups(close), "run_count": 2, "row_count": 4, "missing": []})


def said_of(rows: list[dict], missing: list[str]) -> str:
    return headline({"groups": groups(rows), "run_count": len(rows), "row_count": len(rows), "missing": missing})


def rows_of(place: str, seeds: tuple[int, ...], **by_scheduler: tuple[float, ...]) -> list[dict]:
    return [
        row(name, seed, value, settings=[place])
        for name, values in by_scheduler.items()
        for seed, value in zip(seeds, values, strict=True)
    ]


def test_the_headline_counts_wins_that_are_larger_than_their_spread_over_the_seeds() -> None:
    clear = rows_of("a", (1, 2), ecmp=(0.5, 0.6), crux=(0.7, 0.8))
    chance = rows_of("b", (1, 2), ecmp=(0.5, 0.6), crux=(0.61, 0.55))
    lost = rows_of("c", (1, 2), ecmp=(0.7, 0.8), crux=(0.5, 0.61))
    said = said_of([*clear, *chance, *lost], [])
    wins = "crux is ahead of all others in 1, ecmp is ahead of all others in 1 and none is in 1"
    assert f"Of 3 combinations, by GPU utilisation {wins} (beyond the spread over the seeds)." in said


def test_who_is_ahead_is_ahead_of_every_other_scheduler() -> None:
    rows = rows_of("a", (1, 2), ecmp=(0.5, 0.6), hedera=(0.69, 0.81), crux=(0.7, 0.8))
    assert "Of 2 combinations, by GPU utilisation none is in 2" in said_of(
        [*rows, *rows_of("b", (1, 2), a=(0, 0), b=(0, 0))], []
    )


def test_one_seed_wins_nothing() -> None:
    rows = rows_of("a", (1,), ecmp=(0.1,), crux=(0.9,)) + rows_of("b", (1,), ecmp=(0.1,), crux=(0.9,))
    assert "none is in 2 (one seed each proves nothing: give the sweep several seeds)" in said_of(rows, [])


def test_seeds_that_only_one_of_two_schedulers_has_prove_nothing() -> None:
    rows = rows_of("a", (1, 2), ecmp=(0.1, 0.1)) + rows_of("a", (3, 4), crux=(0.9, 0.9))
    rows += rows_of("b", (1, 2), ecmp=(0.1, 0.1)) + rows_of("b", (3, 4), crux=(0.9, 0.9))
    assert "none is in 2" in said_of(rows, [])


def test_the_headline_counts_what_is_doubtful_or_missing() -> None:
    rows = [row("crux", 1, 0.5, settings=["a"]), row("ecmp", 1, 0.7, settings=["b"], verdict="degraded")]
    said = said_of(rows, ["p: not run"])
    assert "2 combinations, each with one scheduler." in said
    assert "1 of 2 results have a verdict that is not ok." in said and "1 points of the sweep have no result." in said


def test_one_run_and_none_have_a_headline_too() -> None:
    one = headline({"groups": groups([row("crux", 1, 0.5)]), "run_count": 1, "row_count": 1, "missing": []})
    assert one == "1 run of x. GPU utilisation: crux 50.0 %."
    assert headline({"groups": []}) == "No run has a result."


def test_the_page_loads_nothing_and_takes_names_as_text(write_run, records, tmp_path: Path) -> None:
    evil = tmp_path / "<script>alert(1)<!--"
    write_run(*records).path.rename(evil)
    text = page.write(collect([evil]), tmp_path / "out", "<b>").read_text("utf-8")
    assert "<script>alert" not in text and "<b>" not in text.replace("<body>", "")
    assert not any(reach in text for reach in (" src=", "<link", "@import", "<img"))


def test_runs_whose_rows_are_missing_are_compared_by_their_summaries(write_run, records, tmp_path: Path) -> None:
    directory = write_run(*records)
    (directory.path / "crux" / "iterations.csv").unlink()
    shown = document(collect([directory.path]), tmp_path)
    assert (len(shown["runs"]), shown["iterations"], shown["loads"]) == (2, [], [])
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_a_gain_smaller_than_its_spread_is_not_called_one() -> None:
    rows = [row("ecmp", seed, 0.5) for seed in (1, 2)]
    rows += [row("crux", seed, 0.5, gpu_utilization_points=gain) for seed, gain in ((1, 0.2), (2, 1.8))]
    found = groups(rows)
    gain = found[1]["metrics"]["gpu_utilization_points"]
    assert (gain["spread"], gain["proven"]) == (pytest.approx(1.6), False)
    said = headline({"groups": found, "run_count": 2, "row_count": 4, "missing": []})
    assert "The difference of crux to the baseline, +1.0 points, is not larger than its spread" in said


def test_points_are_the_difference_of_the_utilisations_beside_them() -> None:
    rows = [row("crux", seed, 0.73151, gpu_utilization_points=0.02) for seed in (1, 2)]
    (group,) = groups(rows)
    shown = {metric: numbers["shown"] for metric, numbers in group["metrics"].items()}
    assert shown == {"gpu_utilization": "73.2", "gpu_utilization_points": "+0.1", "mean_jct_s": "10.0"}


def test_gains_over_different_baselines_have_no_mean() -> None:
    rows = [
        row("crux", seed, 0.5, gpu_utilization_points=1.0, baseline=name) for seed, name in ((1, "ecmp"), (2, "sglb"))
    ]
    assert groups(rows)[0]["metrics"]["gpu_utilization_points"] is None


def test_a_gain_larger_than_its_spread_is_one_and_of_one_seed_nothing_is_proven() -> None:
    rows = [row("crux", seed, 0.5, gpu_utilization_points=gain) for seed, gain in ((1, 5.0), (2, 6.0))]
    assert groups(rows)[0]["metrics"]["gpu_utilization_points"]["proven"] is True
    assert groups(rows[:1])[0]["metrics"]["gpu_utilization_points"]["proven"] is False
