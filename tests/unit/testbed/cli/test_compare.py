from __future__ import annotations

import argparse
import json

import pytest

from testbed.cli import compare, report
from testbed.errors import BadInputError
from testbed.metrics.comparison import means, side_by_side
from testbed.metrics.summary import summary
from testbed.report.tables import comparison_tables, render, unproven


def _run(verb, *words):
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    return verb.run(parser.parse_args([str(word) for word in words]))


def test_compare_prints_one_json_document(write_run, records, capsys, tmp_path):
    first, second = write_run(*records), write_run(*records)
    assert _run(compare, first.path, second.path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["label"], row["scheduler"]) for row in document["runs"]] == [
        (first.path.name, "ecmp"),
        (first.path.name, "crux"),
        (second.path.name, "ecmp"),
        (second.path.name, "crux"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.path.name, second.path.name]


def test_compare_shows_tables_and_draws(write_run, records, capsys, tmp_path):
    assert _run(compare, write_run(*records).path, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("ecmp", "crux", "big", "small", "idle_by_cause.svg"))
    assert (tmp_path / "out" / "idle_by_cause.svg").read_text().startswith("<svg")


def test_directories_of_one_name_are_told_apart_by_their_path(write_run, records, capsys, tmp_path):
    path = write_run(*records).path
    twin = tmp_path / "other" / path.name
    twin.parent.mkdir()
    twin.symlink_to(path)
    assert _run(compare, path, twin, "--json") == 0
    assert {row["label"] for row in json.loads(capsys.readouterr().out)["runs"]} == {str(path), str(twin)}


@pytest.mark.parametrize("verb", [compare, report])
def test_what_is_no_run_is_refused(verb, tmp_path):
    with pytest.raises(BadInputError, match=r"nowhere: no such directory"):
        _run(verb, tmp_path / "nowhere")


def test_report_writes_the_page_again(write_run, records, capsys):
    directory = write_run(*records)
    assert _run(report, directory.path) == 0
    assert capsys.readouterr().out == f"{directory.path / 'report.html'}\n"
    assert (directory.path / "report.html").is_file()


@pytest.fixture(scope="module")
def document(experiment, records):
    return summary(experiment, records)


def test_means_are_over_the_runs_of_one_scenario(document):
    ecmp = {**document["runs"][0], "gpu_utilization": 0.5}
    other = {**document, "seed": 2, "runs": [ecmp, document["runs"][1]]}
    first, second = means([document, other])
    assert first["scheduler"] == "ecmp"
    assert first["gpu_utilization"] == pytest.approx((document["runs"][0]["gpu_utilization"] + 0.5) / 2)
    assert first["gpu_utilization_points"] is None
    assert second["jct_change"]["big"] == pytest.approx(document["comparison"]["crux"]["jct_change"]["big"])
    assert (second["runs"], second["believable"], second["spread"]) == (2, 2, 0.0)


def test_one_run_has_no_mean(document):
    assert side_by_side({"a": document})["means"] == []


def test_runs_of_different_scenarios_are_not_averaged(document):
    assert means([document, {**document, "scenario": "other"}]) == []


def with_points(document, seed, points):
    """The run with 60 % utilisation under ecmp, and so many points more under crux."""
    change = {**document["comparison"]["crux"], "gpu_utilization_points": points}
    ecmp, crux = document["runs"]
    runs = [{**ecmp, "gpu_utilization": 0.6}, {**crux, "gpu_utilization": 0.6 + points / 100}]
    return {**document, "seed": seed, "runs": runs, "comparison": {**document["comparison"], "crux": change}}


def test_a_difference_smaller_than_the_spread_is_not_called_a_gain(document):
    runs = [with_points(document, seed, points) for seed, points in ((1, 0.5), (2, 1.7))]
    compared = side_by_side(dict(zip("ab", runs, strict=True)))
    baseline, crux = compared["means"]
    assert crux["gpu_utilization_points_spread"] == pytest.approx(1.2)
    assert crux["gpu_utilization_points_proven"] is False
    assert baseline["gpu_utilization_points_spread"] is baseline["gpu_utilization_points_proven"] is None
    (line,) = unproven(compared)
    assert line.endswith("crux: +1.1 points prove nothing: its spread over the seeds is 1.2")
    assert "(+1.1\N{PLUS-MINUS SIGN}1.2)" in render(comparison_tables(compared))


def test_a_difference_larger_than_the_spread_is_a_gain(document):
    runs = [with_points(document, seed, points) for seed, points in ((1, 5.0), (2, 6.0))]
    compared = side_by_side(dict(zip("ab", runs, strict=True)))
    assert compared["means"][1]["gpu_utilization_points_proven"] is True
    assert unproven(compared) == []
    assert "+5.5\N{PLUS-MINUS SIGN}1.0" in render(comparison_tables(compared))


def test_runs_of_one_seed_prove_no_difference(document):
    again = side_by_side({"a": with_points(document, 1, 5.0), "b": with_points(document, 1, 5.0)})
    assert again["means"][1]["gpu_utilization_points_spread"] is None
    assert "there is only one seed" in unproven(again)[0]
    assert "single runs have no spread" in unproven(side_by_side({"a": document}))[0]
