"""Real programs in a scenario: what a run of them would be, and where they cannot run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed import api
from testbed.engines.emulation.external.settings import variables_of
from testbed.engines.flow.engine import FlowEngine
from testbed.errors import BadInputError, CannotRunError, RunFailedError
from testbed.scenario import json_schema, load

FABRIC = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 2,
    "nics_per_host": 2,
    "tors": 2,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
REAL: dict[str, Any] = {
    "name": "real",
    "kind": "external",
    "command": "train --rank {rank} 'two words'",
    "placement": ["h0:1", "h2:1"],
    "communication": "4GB",
    "flops": "3TFLOP",
}


def scenario(folder: Path, **more: object) -> Path:
    path = folder / "real.yaml"
    path.write_text(yaml.safe_dump({"fabric": FABRIC, "channels": 1, "jobs": [REAL], "schedulers": ["ecmp"], **more}))
    return path


def test_a_line_is_split_as_a_shell_does(tmp_path: Path) -> None:
    loaded = load(scenario(tmp_path))
    assert loaded.jobs[0].command == ("train", "--rank", "{rank}", "two words")
    again = tmp_path / "again.yaml"
    again.write_text(loaded.resolved_yaml())
    assert load(again) == loaded


def test_a_host_knows_its_place_in_the_job_and_the_port_of_its_gpus(tmp_path: Path) -> None:
    prepared = api.prepare(scenario(tmp_path, scale={"bandwidth": 4000, "time": 1}))
    found = variables_of(prepared.jobs[0], prepared.experiments[0])
    assert found["h2"] == {
        "rank": "1",
        "world_size": "2",
        "host": "h2",
        "address": "10.0.2.2",  # the second NIC is that of the second GPU
        "addresses": "10.0.0.2,10.0.2.2",
        "first_address": "10.0.0.2",
        "interface": "h2n1p0",
        "port": "4000",
        "gpus": "1",
        "bytes": "1000000",
    }


def test_scale_auto_leaves_a_real_program_its_own_time(tmp_path: Path) -> None:
    small = {**REAL, "name": "small", "placement": ["h1", "h3"], "communication": "100MB"}
    synthetic = {key: value for key, value in small.items() if key not in ("kind", "command")} | {"model": "bert"}
    alone = api.prepare(scenario(tmp_path, jobs=[synthetic]))
    beside = api.prepare(scenario(tmp_path, jobs=[synthetic, REAL]))
    assert alone.experiments[0].scale.time > 1.0
    assert beside.experiments[0].scale.time == 1.0


def test_scale_auto_says_what_is_too_small_beside_a_real_program(tmp_path: Path) -> None:
    small = {"name": "small", "model": "bert", "placement": ["h1", "h3"], "communication": "1MB"}
    with pytest.raises(CannotRunError, match="a real program takes its own time, and at dilation 1 the smallest chunk"):
        api.prepare(scenario(tmp_path, jobs=[small, REAL]))


def test_the_flow_engine_refuses_a_real_program_with_its_line(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    with pytest.raises(
        BadInputError, match=r"real\.yaml:\d+: job 'real' is of kind external, which only the emulation"
    ):
        api.prepare(path, engine="flow")
    experiment = api.prepare(path).experiments[0]
    with pytest.raises(RunFailedError, match="job real is of kind external, which only the emulation runs"):
        FlowEngine().run(experiment, tmp_path, lambda _message: None)


def test_editors_accept_a_real_program_and_miss_a_model_elsewhere(tmp_path: Path) -> None:
    validator = Draft202012Validator(json_schema())
    document = yaml.safe_load(scenario(tmp_path).read_text())
    assert [error.message for error in validator.iter_errors(document)] == []
    bare = {key: value for key, value in REAL.items() if key not in ("kind", "command")}
    assert not validator.is_valid({**document, "jobs": [bare]})
