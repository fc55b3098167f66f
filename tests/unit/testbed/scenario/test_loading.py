"""Scenarios load from paths and by name, take overrides, and read back from what they resolve to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import BadInputError
from testbed.experiment.experiment import Measure, Scale
from testbed.scenario import Scenario, build_fabric, bundled, json_schema, load
from testbed.scenario.on_fabric import gpus_of
from topologies.fabric import Fabric
from topologies.limits import QUANTITIES
from workloads.models.catalogue import CATALOGUE
from workloads.models.figure_calibration import FITTED
from workloads.training.shape_files import shapes

MODELS = (*CATALOGUE, *shapes())
SCHEDULERS = ["cassini", "crux", "crux-pa", "ecmp", "lina"]

SMALL = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: gpt, model: gpt, gpus: 8, start: 0}
  - {name: bert, model: bert, gpus: 2, count: 2}
schedulers: [ecmp, {name: crux, max_levels: 3}]
"""


def loaded(path: str | Path, *overrides: str) -> Scenario:
    """Load against a fixed catalogue and registry."""
    return load(path, overrides, models=MODELS, schedulers=SCHEDULERS)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "my small one.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_scenario_is_right(name: str) -> None:
    scenario = loaded(name)
    assert scenario.name == name.removesuffix(".yaml")
    assert loaded(scenario.name) == scenario
    labels = {
        "lina.yaml": ["ecmp", "lina"],
        "clos96-2to1.yaml": ["ecmp", "crux-pa", "no-priorities", "crux"],
        "multi-tenant.yaml": ["ecmp", "cassini", "crux"],
        "philly-servers.yaml": ["ecmp", "crux-fair"],
        "llm.yaml": ["ecmp", "crux", "cassini", "spray"],
        "llm1024.yaml": ["ecmp", "crux", "cassini", "spray"],
        "spray.yaml": ["ecmp", "spray", "crux", "crux-spray"],
    }
    assert [choice.label for choice in scenario.choices] == labels.get(name, ["ecmp", "crux"])


def test_the_bundled_scenarios_are_those_that_ship() -> None:
    figures = tuple(name for name in bundled() if name.startswith("crux-fig"))
    assert len(figures) == 11
    assert tuple(name for name in bundled() if name not in figures) == (
        "arrivals.yaml",
        "clos1024.yaml",
        "clos96-2to1.yaml",
        "clos96-ports.yaml",
        "clos96.yaml",
        "dctcp.yaml",
        "double-sided.yaml",
        "hello.yaml",
        "hpn-failures-single.yaml",
        "hpn-failures.yaml",
        "lina.yaml",
        "llm.yaml",
        "llm1024.yaml",
        "moe-alltoall.yaml",
        "multi-tenant.yaml",
        "philly-servers.yaml",
        "philly-split.yaml",
        "spray.yaml",
        "spread.yaml",
    )


RESNETS = {"gpt": 48, "bert-0": 16, "bert-1": 16, "resnet-0": 8, "resnet-1": 8}
THIRD_BERT = {"gpt": 48, "bert-0": 16, "bert-1": 16, "bert-2": 16}


@pytest.mark.parametrize(
    ("name", "cables", "jobs"),
    [
        ("clos96.yaml", 48 + 48, RESNETS),
        ("clos96-2to1.yaml", 48 + 24, THIRD_BERT),
        ("clos96-ports.yaml", 192, RESNETS),
    ],
)
def test_clos96_fills_all_96_gpus_and_no_nic_serves_two_jobs(name: str, cables: int, jobs: dict[str, int]) -> None:
    scenario = loaded(name)
    fabric = build_fabric(scenario)
    assert len(fabric.network_links) == 2 * cables
    gpus = {job.name: gpus_of(job, fabric) or () for job in scenario.jobs}
    sizes = {job: len(own) for job, own in gpus.items()}
    assert sizes == jobs
    assert {gpu for own in gpus.values() for gpu in own} == set(fabric.gpus)
    nics = [(nic, job) for job, own in gpus.items() for nic in {fabric.nic_of_gpu[gpu] for gpu in own}]
    assert len(nics) == len({nic for nic, _ in nics}) == 48


def test_clos96_2to1_is_clos96_with_half_the_uplinks() -> None:
    whole, half = loaded("clos96"), loaded("clos96-2to1")
    assert half.jobs[1:3] == whole.jobs[1:3] and half.measure == whole.measure
    before, after = whole.fabric.model_dump(), half.fabric.model_dump()
    assert {key: (before[key], after[key]) for key in before if before[key] != after[key]} == {"aggregations": (8, 4)}


@pytest.mark.parametrize("name", ["clos96.yaml", "double-sided.yaml", "hello.yaml", "moe-alltoall.yaml"])
def test_every_job_of_the_bundled_scenarios_crosses_tors(name: str) -> None:
    scenario = loaded(name)
    fabric = build_fabric(scenario)
    for job in scenario.jobs:
        assert len(_tors(fabric, gpus_of(job, fabric) or ())) > 1


def _tors(fabric: Fabric, gpus: tuple[str, ...]) -> set[str]:
    nics = {fabric.nic_of_gpu[gpu] for gpu in gpus}
    return {fabric.ports[port].switch for nic in nics for port in fabric.nics[nic].ports}


def test_a_scenario_is_named_after_its_file_and_has_defaults(small: Path) -> None:
    scenario = loaded(small)
    assert scenario.name == "my-small-one"
    assert scenario.measure.value() == Measure(20, 3, 300.0)
    assert (scenario.scale, scenario.levels, scenario.seed, scenario.placement_policy) == (None, 8, 1, "first-free")
    assert [(entry.name, entry.options) for entry in scenario.schedulers] == [("ecmp", {}), ("crux", {"max_levels": 3})]


def test_a_job_has_as_many_connections_as_the_calibration_finds_if_nobody_says_otherwise(small: Path) -> None:
    assert loaded(small).channels == FITTED.channels


def test_overrides_reach_into_mappings_lists_and_jobs_by_name(small: Path) -> None:
    scenario = loaded(
        small,
        "measure.iterations=5",
        "jobs.0.gpus=4",
        "jobs.bert.start=1.5s",
        "scale={bandwidth: 100, time: 2}",
        "schedulers=[crux]",
        "fabric.port_rate=200Gbps",
    )
    assert scenario.measure.iterations == 5
    assert (scenario.jobs[0].gpus, scenario.jobs[1].start) == (4, 1.5)
    assert scenario.scale is not None and scenario.scale.value() == Scale(100.0, 2.0, 9000)
    assert [entry.name for entry in scenario.schedulers] == ["crux"]
    assert build_fabric(scenario).uplink("h0n0p0").capacity == 200e9


def test_the_last_override_of_a_key_wins(small: Path) -> None:
    assert loaded(small, "seed=2", "seed=3").seed == 3


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "true"])
def test_a_name_that_yaml_takes_for_true_or_false_has_a_hint(tmp_path: Path, word: str) -> None:
    path = tmp_path / "named.yaml"
    path.write_text(SMALL.replace("name: gpt", f"name: {word}"), encoding="utf-8")
    value = "true" if word in ("on", "yes", "true") else "false"
    hint = "text: on, off, yes and no are true and false in YAML, put them in quotes"
    with pytest.raises(BadInputError, match=f"jobs.0.name is {value}, expected {hint}"):
        loaded(path)
    path.write_text(SMALL.replace("name: gpt", f"name: '{word}'"), encoding="utf-8")
    assert loaded(path).jobs[0].name == word


def test_an_override_can_right_a_wrong_file(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(SMALL.replace("gpus: 8", "gpus: 800"), encoding="utf-8")
    with pytest.raises(BadInputError, match="ask for 804 GPUs on 16"):
        loaded(path)
    assert loaded(path, "jobs.gpt.gpus=8").jobs[0].gpus == 8


def test_a_job_is_found_by_the_names_that_count_gives_it(small: Path) -> None:
    scenario = loaded(small, "jobs.0.gpus=4")
    assert scenario.line_of_job("bert-1", "no room") == f"{small}:6: no room"
    assert scenario.line_of_job("gpt", "no room") == f"{small}:5: no room"


def test_a_scenario_that_does_not_exist_names_the_bundled_ones() -> None:
    with pytest.raises(BadInputError) as error:
        loaded("nothing-like-it")
    expected = "nothing-like-it: no such file, expected a path or a bundled scenario: arrivals.yaml"
    assert str(error.value).startswith(expected)


def test_a_scenario_that_is_spelled_almost_right_is_found_in_the_message() -> None:
    with pytest.raises(BadInputError, match=r"Clos97: no such file, did you mean 'clos96.yaml'\?"):
        loaded("Clos97")


def test_a_directory_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"cannot be read \(Is a directory\), expected a scenario file"):
        loaded(tmp_path)


def test_a_file_that_is_not_text_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInputError, match=r"binary.yaml:1: not UTF-8 text"):
        loaded(path)
    path.write_bytes(b"seed: 1\nname: \x07\n")
    with pytest.raises(BadInputError, match=r"binary.yaml:2: not valid YAML: unprintable character"):
        loaded(path)


def test_a_bottomless_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("fabric: " + "[" * 5000, encoding="utf-8")
    with pytest.raises(BadInputError, match="nested too deep"):
        loaded(path)


def test_merge_keys_and_aliases_are_read(tmp_path: Path) -> None:
    text = SMALL.replace("- {name: gpt,", "- &job {name: gpt,") + "description: a\nseed: 4\n"
    path = tmp_path / "merged.yaml"
    text = text.replace("- {name: bert, model: bert, gpus: 2", "- {<<: *job, name: b, gpus: 3")
    path.write_text(text, encoding="utf-8")
    job = loaded(path).jobs[1]
    assert (job.name, job.model, job.gpus, job.count) == ("b", "gpt", 3, 2)


@pytest.mark.parametrize("name", bundled())
def test_a_resolved_scenario_reads_back_as_itself(name: str, tmp_path: Path) -> None:
    scenario = loaded(name, "seed=7")
    path = tmp_path / "resolved.yaml"
    path.write_text(scenario.resolved_yaml(), encoding="utf-8")
    assert loaded(path) == scenario
    assert loaded(path).resolved_yaml() == scenario.resolved_yaml()


@given(
    rate=st.floats(*QUANTITIES["rate"]),
    compute=st.floats(*QUANTITIES["time"]),
    communication=st.floats(*QUANTITIES["size"]),
    flops=st.floats(*QUANTITIES["work"]),
    jitter=st.floats(0, 0.3),
)
@settings(max_examples=50, deadline=None)
def test_quantities_survive_resolving_exactly(
    rate: float, compute: float, communication: float, flops: float, jitter: float
) -> None:
    data: dict[str, Any] = yaml.safe_load(SMALL)
    data["name"] = "x"
    data["fabric"]["port_rate"] = f"{rate!r}bps"
    data["jobs"][0] |= {"compute": f"{compute!r}s", "communication": f"{communication!r}B", "flops": f"{flops!r}FLOP"}
    data["jobs"][0]["jitter"] = jitter
    scenario = Scenario.model_validate(data)
    again = Scenario.model_validate(yaml.safe_load(scenario.resolved_yaml()))
    assert again == scenario
    assert (again.fabric.port_rate, again.jobs[0].compute) == (rate, compute)
    assert (again.jobs[0].communication, again.jobs[0].flops, again.jobs[0].jitter) == (communication, flops, jitter)


def around(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Lists and mappings of what ``inner`` draws."""
    keys = st.sampled_from(["name", "model", "gpus", "kind", "time", "x"])
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3))


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 200), st.floats(), st.text(max_size=6), st.just("gpt"))
VALUES = st.one_of(LEAVES, around(st.one_of(LEAVES, around(LEAVES))))
KEYS = st.sampled_from(
    [
        "name",
        "fabric",
        "fabric.kind",
        "fabric.tors",
        "fabric.port_rate",
        "jobs",
        "jobs.0",
        "jobs.0.gpus",
        "jobs.1.count",
        "jobs.0.placement",
        "jobs.0.stragglers",
        "jobs.0.start",
        "schedulers",
        "schedulers.0",
        "measure",
        "measure.time_limit",
        "scale",
        "levels",
        "seed",
        "checks",
        "placement_policy",
        "nonsense",
        "jobs.0.nonsense",
    ]
)


@given(key=KEYS, value=VALUES)
@settings(max_examples=200, deadline=None)
def test_whatever_a_value_is_it_is_accepted_or_refused_line_by_line(
    key: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(SMALL, encoding="utf-8")
    try:
        scenario = loaded(path, f"{key}={json.dumps(value)}")
    except BadInputError as error:
        for line in str(error).splitlines():
            assert line.startswith((f"{path}:", "--set ")), line
    else:
        assert loaded(path, f"{key}={json.dumps(value)}") == scenario


def test_the_schema_knows_every_key_and_both_spellings() -> None:
    schema: Any = json_schema()
    assert set(schema["properties"]) == set(Scenario.model_fields)
    assert schema["required"] == ["fabric", "jobs", "schedulers"]
    assert schema["additionalProperties"] is False
    assert {"const": "auto", "type": "string"} in schema["properties"]["scale"]["anyOf"]
    job = schema["$defs"]["JobEntry"]["properties"]
    assert all("description" in entry for entry in job.values())
    assert "string" in json.dumps(job["start"])
