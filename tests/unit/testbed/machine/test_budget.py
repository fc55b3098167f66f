"""The machine's budget: how it follows from what was seen, and where it is kept."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.forwarding_budget import SHAPES, experiment, samples_of
from testbed.experiment.scale import peak_load
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.machine import budget_cache
from testbed.machine.budget import (
    BUILT_IN,
    BUILT_IN_BUDGETS,
    DEFAULT,
    Budget,
    BudgetPoint,
    Sample,
    affordable,
    budget_of,
    constant,
    weakest,
)
from testbed.machine.budget_cache import current_budget, store
from testbed.results.record import LinkRow, RunRecord
from topologies.datapath import DATAPATHS, Datapath

MEASURED = Budget((BudgetPoint(9000, 48, 20_000.0, 0.01), BudgetPoint(1500, 8, 30_000.0)), "measured once")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(budget_cache.PLACE, str(tmp_path / "kept"))
    return tmp_path / "kept" / budget_cache.FILE


def test_what_is_kept_is_found_again(cache: Path) -> None:
    assert current_budget("userspace") == DEFAULT
    assert store(MEASURED, "userspace") == cache
    assert current_budget("userspace") == MEASURED
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def test_a_budget_of_another_machine_does_not_count_and_is_not_lost(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(MEASURED, "userspace")
    here = budget_cache.machine_key("userspace")
    monkeypatch.setattr(budget_cache, "machine_key", lambda datapath: {**here, "kernel": "another"})
    assert current_budget("userspace") == DEFAULT
    store(Budget(MEASURED.points[:1], "there"), "userspace")
    monkeypatch.setattr(budget_cache, "machine_key", lambda datapath: here)
    assert current_budget("userspace") == MEASURED


def test_each_datapath_has_a_budget_of_its_own(cache: Path) -> None:
    assert [current_budget(name) for name in DATAPATHS] == [BUILT_IN_BUDGETS[name] for name in DATAPATHS]
    measured: dict[Datapath, Budget] = {name: constant(1000.0 + len(name), "measured") for name in DATAPATHS}
    for name, budget in measured.items():
        store(budget, name)
    assert {name: current_budget(name).points[:1] for name in DATAPATHS} == {
        name: budget.points for name, budget in measured.items()
    }


@pytest.mark.parametrize("channels", [1, 4])
def test_a_fabric_larger_than_the_measured_one_costs_as_many_times_more_as_is_built_in(
    channels: int, cache: Path
) -> None:
    built_in = BUILT_IN_BUDGETS["nftables"]
    points = tuple(BudgetPoint(9000, ports, 90_000.0, channels=channels) for ports in (8, 48))
    store(Budget(points, "measured"), "nftables")
    found = current_budget("nftables")
    expected = built_in.at(9000, 512, channels) / built_in.at(9000, 48, channels)
    assert expected < 0.6
    assert found.at(9000, 512, channels) / found.at(9000, 48, channels) == pytest.approx(expected)
    assert found.at(9000, 8, channels) == found.at(9000, 48, channels)  # what was measured stays as it is


def test_a_budget_from_before_datapaths_had_their_own_does_not_count(cache: Path) -> None:
    key = budget_cache.machine_key("userspace")
    old = {name: value for name, value in key.items() if name != "datapath"} | {"kernel_datapath": False}
    cache.parent.mkdir()
    entry = {"machine": old, "budget": MEASURED.document()}
    cache.write_text(json.dumps({"schema_version": 1, "budgets": [entry]}))
    assert current_budget("userspace") == DEFAULT


@given(st.lists(st.floats(1.0, 1e6), min_size=1))
def test_the_weakest_budget_is_the_one_that_allows_least(rates: list[float]) -> None:
    assert weakest(map(constant, rates)) == constant(min(rates))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema_version": 1, "budgets": 3}', '{"schema_version": 1, "budgets": [7]}']
)
def test_a_spoilt_file_counts_as_none(cache: Path, text: str) -> None:
    cache.parent.mkdir()
    cache.write_text(text)
    assert current_budget("userspace") == DEFAULT
    store(MEASURED, "userspace")
    assert current_budget("userspace") == MEASURED


def test_a_user_without_a_budget_reads_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget_cache.PLACE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(budget_cache, "_SYSTEM", tmp_path / "system")
    monkeypatch.setattr(budget_cache.os, "geteuid", lambda: 1000)
    document = {"machine": budget_cache.machine_key("userspace"), "budget": MEASURED.document()}
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / budget_cache.FILE).write_text(json.dumps({"schema_version": 1, "budgets": [document]}))
    assert current_budget("userspace") == MEASURED
    assert store(DEFAULT, "userspace") == tmp_path / "own" / "testbed" / budget_cache.FILE


def test_a_budget_without_points_or_of_nothing_is_none() -> None:
    with pytest.raises(ValueError):
        Budget((), "nothing")
    with pytest.raises(ValueError):
        budget_of({"source": "x", "points": [asdict(BudgetPoint(9000, 8, 0.0))]})


@pytest.mark.parametrize("missing", ["channels", "switches"])
def test_a_budget_from_before_channels_or_switches_counted_does_not_count(cache: Path, missing: str) -> None:
    store(MEASURED, "userspace")
    document = json.loads(cache.read_text())
    for point in document["budgets"][0]["budget"]["points"]:
        del point[missing]
    cache.write_text(json.dumps(document))
    assert current_budget("userspace") == DEFAULT


NEAR_AND_FAR = Budget(
    (
        BudgetPoint(9000, 48, 30_000.0, channels=1, switches=1),
        BudgetPoint(9000, 48, 20_000.0, channels=8, switches=1),
        BudgetPoint(9000, 48, 60_000.0, channels=1, switches=3),
        BudgetPoint(9000, 48, 40_000.0, channels=4, switches=3),
        BudgetPoint(9000, 48, 30_000.0, channels=8, switches=3),
    ),
    BUILT_IN,
)


def test_a_packet_costs_something_at_its_ends_and_something_at_each_switch() -> None:
    packets = {switches: NEAR_AND_FAR.at(9000, 48, 1, switches) / switches for switches in (1, 2, 3)}
    assert packets == {1: pytest.approx(30_000), 3: pytest.approx(20_000), 2: pytest.approx(2 / (1 / 30e3 + 1 / 20e3))}


def test_more_switches_than_measured_cost_as_much_each_and_so_does_every_switch_where_one_distance_was() -> None:
    assert NEAR_AND_FAR.at(9000, 48, 1, 5) == NEAR_AND_FAR.at(9000, 48, 1, 3) == NEAR_AND_FAR.at(9000, 48)
    assert MEASURED.at(9000, 48, 1, 1) == MEASURED.at(9000, 48, 1, 3)


@given(st.floats(1.0, 8.0), st.floats(1.0, 5.0), st.floats(1.0, 5.0))
def test_over_more_switches_fewer_packets_and_more_hops_are_carried(channels: float, one: float, other: float) -> None:
    few, many = sorted((one, other))
    near, far = (NEAR_AND_FAR.at(9000, 48, channels, switches) for switches in (few, many))
    assert near <= far * (1 + 1e-9)
    assert near / few >= far / many * (1 - 1e-9)


def at(load: float, *busy: float) -> list[Sample]:
    return [Sample(load, share, 0.0) for share in busy]


def test_between_a_load_that_fits_and_one_that_does_not_lies_the_budget() -> None:
    assert affordable([at(12_000, 0.70, 0.66), at(8000, 0.45, 0.50)], 0.65) == pytest.approx(8000 + 4000 * 0.15 / 0.20)


def test_beyond_what_was_tried_the_budget_grows_in_proportion_and_not_by_much() -> None:
    assert affordable([at(8000, 0.5), at(12_000, 0.62)], 0.65) == pytest.approx(12_000 * 0.65 / 0.62)
    assert affordable([at(8000, 0.3)], 0.65) == pytest.approx(1.1 * 8000)


def test_where_nothing_fitted_the_budget_is_well_below() -> None:
    assert affordable([at(12_000, 0.95), at(8000, 0.80)], 0.65) == pytest.approx(8000 * (0.65 / 0.80) ** 2)


def test_one_busy_second_among_few_counts_and_a_run_unseen_does_not() -> None:
    calm = [0.5] * 4
    assert affordable([at(10_000, *calm, 0.8)], 0.5) < affordable([[], at(10_000, *calm)], 0.5) == 10_000
    with pytest.raises(ValueError):
        affordable([[], []], 0.65)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_measuring_run_sends_what_it_is_asked_to(shape: object) -> None:
    made = experiment(shape, 4500, 10_000.0)  # type: ignore[arg-type]
    assert peak_load(made.fabric, made.jobs, made.scale).packet_hops_per_s == pytest.approx(10_000.0)
    (job,) = made.jobs
    assert len({flow.source for flow in job.flows}) == shape.ports  # type: ignore[attr-defined]
    for flow in job.flows:
        assert {len(path) for path in made.fabric.candidate_paths(flow.source, flow.target)} == {shape.switches + 1}  # type: ignore[attr-defined]
        share = 8 * flow.bytes / made.fabric.uplink(flow.source).capacity
        assert share * shape.channels == pytest.approx(shape.sending_s)  # type: ignore[attr-defined]


@pytest.mark.parametrize("datapath", DATAPATHS)
def test_a_measuring_run_is_of_the_datapath_that_is_asked_for(datapath: Datapath) -> None:
    assert experiment(SHAPES[-1], 9000, 10_000.0, datapath).datapath == datapath


@pytest.mark.parametrize("dilation", [1.0, 3.0])
def test_samples_are_what_switches_sent_in_steady_seconds_that_others_left_alone(dilation: float) -> None:
    made = experiment(SHAPES[-1], 9000, 10_000.0)
    made = replace(made, scale=replace(made.scale, time=dilation))
    port = next(link for link in made.fabric.network_links if link.source in made.fabric.ports)
    trunk = next(link for link in made.fabric.network_links if link.kind == "tor-agg")

    def row(time_s: float, link: str, packets: float) -> LinkRow:
        return LinkRow(time_s / dilation, link, 7, made.scale.unscale_size(packets * 8960), 0.0, 0)

    rows = [
        row(float(second), name, count)
        for second, count in ((1, 50), (2, 100), (3, 100), (4, 95))
        for name in (port.name, trunk.name)
    ]
    cpu = [[1.0, 1.0, 0.7, 0.0, 0.0], [2.0, 1.0, 0.5, 0.01, 0.04], [3.0, 1.0, 0.1, 0.3, 0.1], [4.0, 1.0, 0.5, 0.0, 0.0]]
    record = RunRecord(SchedulerChoice("crux"), "emulation", 4.0, {}, (), tuple(rows), (), environment={"cpu": cpu})
    found = samples_of(record, made)
    assert [(round(s.packet_hops_per_s), round(s.busy, 6), round(s.others, 6)) for s in found] == [
        (100, 0.45, 0.05),
        (95, 0.5, 0.0),
    ]
