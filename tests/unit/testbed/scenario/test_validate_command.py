"""``testbed validate`` and ``testbed schema`` as their users meet them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from testbed.cli import validate
from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.scenario import bundled

SMALL = """
fabric: {kind: clos, hosts: 2, gpus_per_host: 2, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: one, model: bert, placement: [h0g0, h1g0], compute: 1s, communication: 1GB}
schedulers:
  - ecmp
"""


def validated(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    validate.add_arguments(parser)
    return validate.run(parser.parse_args(arguments))


def test_a_right_scenario_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    assert validated(str(path)) == 0
    assert capsys.readouterr().out == "small: valid (1 job on 2 of 4 GPUs, schedulers ecmp)\n"


def test_gpus_that_jobs_share_count_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("schedulers:", "  - {name: two, model: bert, share_gpus_with: one}\nschedulers:"))
    assert validated(str(path)) == 0
    assert "2 jobs on 2 of 4 GPUs" in capsys.readouterr().out


@pytest.mark.parametrize("name", bundled())
def test_the_bundled_scenarios_validate_against_the_real_catalogue(name: str) -> None:
    assert validated(name) == 0


def test_a_job_that_cannot_be_built_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    text = SMALL.replace("placement: [h0g0, h1g0]", "gpus: 1, stragglers: [{gpu: h1g1, factor: 2}]")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as error:
        validated(str(path))
    assert str(error.value).startswith(f"{path}:5: job 'one': straggler 'h1g1'")
    assert len(str(error.value).splitlines()) == 1


def test_an_option_that_a_scheduler_does_not_have_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("- ecmp", "- {name: ecmp, no_such_option: 3}"), encoding="utf-8")
    with pytest.raises(BadInputError, match=r"small.yaml:7: unknown option 'no_such_option' of scheduler ecmp"):
        validated(str(path))


def test_the_schema_command_prints_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Scenario of the testbed"
