"""What of a fabric an emulation builds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.api import prepare
from testbed.experiment.built_part import built_part_of
from testbed.experiment.experiment import Experiment
from testbed.experiment.failures import Failure
from topologies.built_part import whole

SCENARIO = """
fabric: {kind: clos, hosts: 6, gpus_per_host: 2, nics_per_host: 1, tors: 3, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
jobs:
  - {name: near, model: bert, placement: [h0, h1]}
  - {name: later, model: bert, placement: [h2, h3], start: 5s}
schedulers: [ecmp]
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "s.yaml").write_text(SCENARIO, "utf-8")
    return prepare(tmp_path / "s.yaml", engine="flow").experiments[0]


def test_hosts_of_jobs_that_come_later_are_built_and_those_without_jobs_are_not(experiment: Experiment) -> None:
    assert built_part_of(experiment).hosts == ("h0", "h1", "h2", "h3")


def test_a_scenario_can_ask_for_all(experiment: Experiment) -> None:
    assert built_part_of(replace(experiment, build="all")) == whole(experiment.fabric)


def test_where_cables_fail_all_is_built(experiment: Experiment) -> None:
    failing = replace(experiment, failures=(Failure("tor0->agg0", 1.0, 2.0),))
    assert built_part_of(failing) == whole(experiment.fabric)
