"""Fewer schedulers than the file has: checks about the others go with them, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import BadInputError
from testbed.scenario import load

SCENARIO = """\
fabric: {kind: clos, hosts: 2, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: one, model: bert, placement: [h0g0, h1g0]}
schedulers: [ecmp, crux]
checks:
  - crux.gpu_utilization >= ecmp.gpu_utilization
  - one.iteration_s.mean > 0s
  - comparison.crux.gpu_utilization_points > 1
  - ecmp.gpu_utilization > 0
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO, "utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("schedulers", "kept"),
    [
        ("[ecmp]", ["one.iteration_s.mean > 0s", "ecmp.gpu_utilization > 0"]),
        ("[{name: crux, paths: false}]", ["one.iteration_s.mean > 0s"]),
        ("[ecmp-switch]", ["one.iteration_s.mean > 0s"]),
    ],
)
def test_checks_of_schedulers_that_do_not_run_are_left_out(schedulers: str, kept: list[str], path: str) -> None:
    assert list(load(path, [f"schedulers={schedulers}"]).checks) == kept


def test_with_all_schedulers_every_check_stays(path: str) -> None:
    assert len(load(path, ["schedulers=[crux, ecmp, ecmp-switch]"]).checks) == 4


def test_a_check_that_is_wrong_anyway_keeps_its_line(path: str) -> None:
    Path(path).write_text(SCENARIO.replace("ecmp.gpu_utilization > 0\n", "ecmp.gpu_util > 0\n"), "utf-8")
    with pytest.raises(BadInputError, match=r"s\.yaml:10: unknown name 'ecmp\.gpu_util'"):
        load(path, ["schedulers=[ecmp]"])


def test_a_file_whose_checks_name_a_scheduler_it_does_not_have_is_still_wrong(path: str) -> None:
    Path(path).write_text(SCENARIO.replace("[ecmp, crux]", "[ecmp]"), "utf-8")
    with pytest.raises(BadInputError, match=r"s\.yaml:7: unknown name 'crux"):
        load(path)


def test_a_check_given_beside_the_schedulers_must_fit_them(path: str) -> None:
    with pytest.raises(BadInputError, match=r"--set checks=.*unknown name 'crux"):
        load(path, ["schedulers=[ecmp]", "checks=[crux.gpu_utilization > 0]"])
