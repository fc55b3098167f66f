"""One scheduler several times in a scenario: its labels are the names by which everything else finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed.errors import BadInputError
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.scenario import json_schema, load

SCENARIO = """\
fabric: {kind: clos, hosts: 2, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: one, model: bert, placement: [h0g0, h1g0]}
schedulers:
  - crux
  - {name: crux, label: no-priorities, priorities: false}
  - {name: ecmp, label: ecmp}
checks:
  - no-priorities.gpu_utilization <= crux.gpu_utilization
  - no-priorities.one.level >= 0
  - comparison.no-priorities.gpu_utilization_points < 1 point
"""
NO_PRIORITIES = SchedulerChoice("crux", {"priorities": False}, "no-priorities")


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO, "utf-8")
    return str(file)


def test_the_label_is_the_name_where_the_scenario_gives_no_other(path: str) -> None:
    assert load(path).choices == (SchedulerChoice("crux"), NO_PRIORITIES, SchedulerChoice("ecmp"))


def test_a_labelled_scheduler_reads_back_from_the_resolved_scenario(path: str, tmp_path: Path) -> None:
    text = load(path).resolved_yaml()
    assert yaml.safe_load(text)["schedulers"][1:] == [
        {"name": "crux", "label": "no-priorities", "priorities": False},
        "ecmp",
    ]
    (tmp_path / "again.yaml").write_text(text, "utf-8")
    assert load(tmp_path / "again.yaml").choices == load(path).choices


@pytest.mark.parametrize("names", ["[no-priorities, hedera]", "[no-priorities]"])
def test_a_name_on_the_command_line_is_the_entry_of_this_label_with_its_options(names: str, path: str) -> None:
    scenario = load(path, [f"schedulers={names}"])
    assert scenario.choices[0] == NO_PRIORITIES
    assert scenario.checks == ("no-priorities.one.level >= 0",)


def test_a_mapping_on_the_command_line_is_taken_as_it_is(path: str) -> None:
    assert load(path, ["schedulers=[{name: crux, fairness: 0.5}]"]).choices == (
        SchedulerChoice("crux", {"fairness": 0.5}),
    )


def test_an_override_names_an_entry_by_its_label(path: str) -> None:
    choices = load(path, ["schedulers.no-priorities.paths=false", "schedulers=[no-priorities]"]).choices
    assert choices == (SchedulerChoice("crux", {"priorities": False, "paths": False}, "no-priorities"),)


def test_two_equal_labels_are_one_line_with_the_line_of_the_second(path: str) -> None:
    Path(path).write_text(SCENARIO.replace("name: ecmp, label: ecmp", "name: ecmp, label: no-priorities"), "utf-8")
    with pytest.raises(BadInputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}:8: 'no-priorities' is in schedulers twice, expected each once")
    assert "\n" not in str(error.value)


def test_a_check_that_misspells_a_label_is_told_the_label(path: str) -> None:
    with pytest.raises(BadInputError, match=r"'no-priority' is no scheduler, .* did you mean 'no-priorities'"):
        load(path, ["checks=[no-priority.gpu_utilization > 0]"])


def test_the_schema_describes_the_label() -> None:
    properties = json_schema()["$defs"]["SchedulerSpec"]["properties"]
    assert properties["label"]["description"].startswith("what checks, tables and run directories call it")


def test_what_is_behind_a_label_is_said_as_a_scenario_says_it() -> None:
    assert NO_PRIORITIES.described == "no-priorities (crux, priorities: false)"
    assert SchedulerChoice("crux", {"fairness": 0.5}).described == "crux (fairness: 0.5)"
    assert SchedulerChoice("crux").described == "crux"
