"""What failures do to jobs where rates are computed: closed forms for all kinds of parts, waits, timeouts, restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine, SimulationEngine
from testbed.results.record import RunRecord

CLOS: Mapping[str, Any] = {
    **{"kind": "clos", "hosts": 4, "gpus_per_host": 1, "nics_per_host": 1, "tors": 2, "aggregations": 2},
    **{"port_rate": "100Gbps", "fabric_rate": "100Gbps"},
}
DUAL: Mapping[str, Any] = {
    **{"kind": "hpn", "hosts": 4, "gpus_per_host": 1, "nics_per_host": 1, "segments": 1, "aggregations": 2},
    **{"port_rate": "100Gbps", "fabric_rate": "100Gbps", "planes": 2},
}
GO_ON = {"timeout": "100s"}


def document(failures: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    """Two jobs of 1 s of compute and 1 s of communication, each on a host of each ToR."""
    job = {"model": "bert", "collective": "alltoall", "compute": "1s", "overlap": 0}
    jobs = [
        {"name": name, "placement": hosts, "communication": "25GB", **job}
        for name, hosts in (("one", ["h0", "h2"]), ("two", ["h1", "h3"]))
    ]
    return {
        "fabric": dict(CLOS),
        "jobs": jobs,
        "schedulers": ["crux"],
        "failures": list(failures),
        "recovery": GO_ON,
        "measure": {"iterations": 20, "warmup": 1, "time_limit": "300s"},
        **changes,
    }


def run(folder: Path, failures: Sequence[Mapping[str, Any]], engine: str = "flow", **changes: Any) -> RunRecord:
    path = folder / "outages.yaml"
    path.write_text(yaml.safe_dump(document(failures, **changes)), "utf-8")
    (experiment,) = prepare(str(path), engine=engine).experiments
    made = FlowEngine() if engine == "flow" else SimulationEngine()
    return made.run(experiment, folder, lambda _message: None)


def times(record: RunRecord, job: str) -> list[tuple[float, float]]:
    """When each iteration of ``job`` began and how long it took."""
    rows = {row.iteration: (row.start_s, row.end_s - row.start_s) for row in record.iterations if row.job == job}
    return [rows[number] for number in sorted(rows)]


def undisturbed(record: RunRecord, job: str) -> bool:
    """Whether every iteration of ``job`` took what it takes without failures."""
    found = [took for _, took in times(record, job)]
    return len(found) >= 21 and found == pytest.approx([2.0] * len(found), abs=0.01)


def outages(record: RunRecord) -> list[dict[str, Any]]:
    found = record.environment["outages"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("part", [{"link": "tor0->h0n0p0"}, {"nic": "h0n0"}])
def test_a_job_whose_port_has_no_cable_stands_still_and_goes_on(part: dict[str, str], tmp_path: Path) -> None:
    record = run(tmp_path, [{**part, "at": "5.5s", "until": "9s"}])
    # Iterations begin at 0, 2, 4: the one under way has half its bytes left when the cable fails.
    (stopped,) = [took for start, took in times(record, "one") if start == pytest.approx(4.0, abs=0.01)]
    assert stopped == pytest.approx(9.5 - 4.0, abs=0.01)
    assert undisturbed(record, "two")
    (outage,) = outages(record)
    assert (outage["job"], outage["ended_s"], outage["repeated"]) == ("one", None, 0)
    assert (outage["from_s"], outage["until_s"]) == pytest.approx((5.5, 9.0))


@pytest.mark.parametrize("engine", ["flow", "simulation"])
def test_a_tor_takes_all_its_hosts_along(engine: str, tmp_path: Path) -> None:
    record = run(tmp_path, [{"switch": "tor1", "at": "5.5s", "until": "9s"}], engine, scale={"bandwidth": 20000})
    for job in ("one", "two"):
        (stopped,) = [took for start, took in times(record, job) if start == pytest.approx(4.0, abs=0.1)]
        assert stopped == pytest.approx(9.5 - 4.0, rel=0.03)  # packets under way arrive
    assert {(row["job"], row["until_s"]) for row in outages(record)} == {("one", 9.0), ("two", 9.0)}
    assert [row.cause for row in record.decisions][-2:] == ["tor1 failed", "tor1 works again"]


def test_an_aggregation_switch_leaves_one_way_to_share(tmp_path: Path) -> None:
    record = run(tmp_path, [{"switch": "agg0", "at": "20s", "until": "50s"}], levels=1)
    during = [took for start, took in times(record, "one") if start >= 22.0 and start + took <= 50.0]
    assert during == pytest.approx([3.0] * len(during), rel=1e-3) and during
    assert not outages(record)


def test_a_nic_with_two_ports_goes_on_at_half_the_rate(tmp_path: Path) -> None:
    record = run(tmp_path, [{"link": "h0n0p0->tor0", "at": "20s"}], fabric=dict(DUAL))
    before = [took for start, took in times(record, "one") if start + took <= 20.0]
    after = [took for start, took in times(record, "one") if start >= 20.5]
    assert before == pytest.approx([1.5] * len(before), rel=1e-3) and before
    assert after == pytest.approx([2.0] * len(after), rel=1e-3) and after
    assert not outages(record)


def test_a_cable_at_a_share_of_its_rate_takes_longer_and_nobody_is_told(tmp_path: Path) -> None:
    failures = [{"link": link, "rate": 0.5, "at": "20s"} for link in ("h0n0p0->tor0",)]
    record = run(tmp_path, failures)
    after = [took for start, took in times(record, "one") if start >= 20.0]
    assert after == pytest.approx([3.0] * len(after), rel=1e-3) and after
    assert len({row.cause for row in record.decisions} - {"arrival of one", "arrival of two"}) <= 2  # departures
    assert undisturbed(record, "two")


@pytest.mark.parametrize(("transport", "rel"), [("window", 0.02), ("dcqcn", 0.1)])
def test_a_lossy_cable_costs_at_least_what_is_lost(transport: str, rel: float, tmp_path: Path) -> None:
    failures = [{"link": "h0n0p0->tor0", "loss": 0.05, "at": "10s"}]
    scale = {"bandwidth": 20000 if transport == "window" else 100}
    short = {"iterations": 9, "warmup": 1, "time_limit": "300s"}
    record = run(tmp_path, failures, "simulation", network={"transport": transport}, scale=scale, measure=short)
    after = [took for start, took in times(record, "one") if start >= 10.0]
    assert after and min(after) > 2.04
    if transport == "window":
        assert after == pytest.approx([1.0 + 1.0 / 0.95] * len(after), rel=rel)


def test_what_flaps_fails_and_comes_back_in_turn(tmp_path: Path) -> None:
    record = run(tmp_path, [{"nic": "h0n0", "at": "10s", "until": "20s", "flaps": {"down": "1s", "up": "2s"}}])
    spans = [(row["from_s"], row["until_s"]) for row in outages(record)]
    assert spans == [(10.0, 11.0), (13.0, 14.0), (16.0, 17.0), (19.0, 20.0)]


def test_after_the_timeout_a_job_ends_and_starts_again_from_its_last_checkpoint(tmp_path: Path) -> None:
    recovery = {"timeout": "3s", "checkpoint_every": 2, "restart": "0.5s"}
    record = run(tmp_path, [{"nic": "h0n0", "at": "7s", "until": "20s"}], recovery=recovery)
    (outage,) = outages(record)
    assert (outage["from_s"], outage["ended_s"], outage["until_s"]) == (7.0, 10.0, 20.0)
    assert outage["repeated"] == 1  # three were completed, the last checkpoint is that of the second
    starts = [start for start, _ in times(record, "one")]
    assert starts[:3] == pytest.approx([0.0, 2.0, 4.0], abs=0.01) and starts[3] == pytest.approx(20.0, abs=0.01)
    numbers = {row.iteration for row in record.iterations if row.job == "one"}
    assert numbers == set(range(len(numbers)))


@pytest.mark.parametrize("until", ["8s", "15s"])
def test_a_job_whose_host_has_failed_has_lost_its_state_even_if_the_host_is_back_before_the_timeout(
    until: str, tmp_path: Path
) -> None:
    recovery = {"timeout": "4s", "restart": "1s"}
    record = run(tmp_path, [{"host": "h0", "at": "7s", "until": until}], recovery=recovery)
    (outage,) = outages(record)
    assert outage["host_failed"] and outage["ended_s"] == 11.0
    assert outage["until_s"] == (12.0 if until == "8s" else 15.0)
    assert undisturbed(record, "two")


def test_a_job_on_one_host_fails_with_it(tmp_path: Path) -> None:
    fabric = {**CLOS, "gpus_per_host": 2}
    jobs = [{"name": "local", "model": "bert", "placement": ["h0"], "compute": "1s", "communication": "0B"}]
    record = run(
        tmp_path, [{"host": "h0", "at": "3.5s", "until": "6s"}], fabric=fabric, jobs=jobs, recovery={"timeout": "1s"}
    )
    (outage,) = outages(record)
    assert (outage["from_s"], outage["ended_s"], outage["until_s"]) == (3.5, 4.5, 6.0)


def test_drawn_failures_come_with_the_seed_and_differ_with_another(tmp_path: Path) -> None:
    rule = [{"each": "nic", "per_hour": 120, "lasts": "2s"}]
    first, again = run(tmp_path, rule), run(tmp_path, rule)
    assert outages(first) == outages(again) and outages(first)
    assert outages(run(tmp_path, rule, seed=2)) != outages(first)


@pytest.mark.parametrize("scheduler", ["ecmp", "crux", "cassini", "sincronia", "varys", "hedera", "mltcp"])
def test_every_scheduler_lives_with_partitions(scheduler: str, tmp_path: Path) -> None:
    failures = [
        {"switch": switch, "at": at, "until": until}
        for switch, at, until in (("agg0", "3s", "9s"), ("agg1", "5s", "8s"))
    ]
    record = run(tmp_path, failures, schedulers=[scheduler])
    assert [row["until_s"] for row in outages(record)] == [8.0, 8.0]
    assert len(record.iterations) >= 42


def test_under_a_manager_a_job_starts_again_on_other_hosts(tmp_path: Path) -> None:
    job = {"model": "bert", "collective": "alltoall", "compute": "1s", "communication": "25GB", "overlap": 0}
    managed = [{"name": "one", "gpus": 2, "iterations": 12, **job}]
    record = run(
        tmp_path,
        [{"host": "h0", "at": "7s"}],
        jobs=managed,
        manager={"queue": "fifo"},
        recovery={"timeout": "3s", "checkpoint_every": 2},
    )
    (outage,) = outages(record)
    assert (outage["job"], outage["ended_s"], outage["until_s"], outage["repeated"]) == ("one", 10.0, 10.0, 1)
    assert record.managed is not None
    assert record.managed.stints_of["one"] == ("one", "one@2")
    first, second = record.managed.stints
    assert any(gpu.startswith("h0") for gpu in first.gpus) and not any(gpu.startswith("h0") for gpu in second.gpus)
    assert second.iterations == 12 - 2  # three were completed, the last checkpoint was that of the second
    (outcome,) = record.managed.outcomes
    assert outcome.status == "passed" and outcome.end_s == pytest.approx(10.0 + 2.0 * 10, abs=0.5)
