"""The scenarios that benchmarks make: each can be prepared, and is what its row says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks import arrival, scale, startup, window_shares
from testbed.api import Prepared, prepare, run_scenario
from testbed.fluid.proportional import AT_OWN_NIC


def prepared(document: object, folder: Path) -> Prepared:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return prepare(str(path))


@pytest.mark.parametrize(("tors", "hosts", "gpus"), [(8, 4, 256), (16, 4, 512)])
def test_fabrics_between_the_bundled_ones_are_full_and_not_oversubscribed(
    tors: int, hosts: int, gpus: int, tmp_path: Path
) -> None:
    made = prepared({**scale.scenario(tors, hosts), "scale": {"bandwidth": 120_000, "time": 12}}, tmp_path)
    assert len(made.fabric.gpus) == gpus == sum(len(job.gpus) for job in made.jobs)
    up = sum(link.capacity for link in made.fabric.network_links if link.kind == "tor-agg") / 2
    down = sum(link.capacity for link in made.fabric.network_links if link.kind == "host-tor") / 2
    assert up == down


def test_all_but_the_first_jobs_arrive_while_others_run(tmp_path: Path) -> None:
    small = prepared(arrival.clos96("userspace", largest_last=True), tmp_path)
    assert sorted(job.start_s for job in small.jobs) == [0.0, 2.0, 4.0, 6.0, 8.0]
    large = prepared(arrival.clos1024(), tmp_path)
    assert [job.start_s for job in large.jobs if job.start_s] == [2.0, 4.0, 6.0]


def test_two_fabrics_are_brought_up(tmp_path: Path) -> None:
    sizes = [prepared(document, tmp_path).fabric for document in startup.scenarios()]
    assert [(len(fabric.hosts), len(fabric.switches)) for fabric in sizes] == [(12, 14), (96, 18)]


@pytest.mark.parametrize(("sharing", "share"), [("max-min", 0.5), ("proportional", 1 / (2 + AT_OWN_NIC))])
def test_by_the_flow_engine_the_long_flow_has_the_share_that_the_benchmark_reads_off_packets(
    sharing: str, share: float, tmp_path: Path
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump({**window_shares.scenario(20.0, 29.0, 8), "schedulers": ["ecmp"]}), "utf-8")
    result = run_scenario(path, engine="flow", overrides=[f"sharing={sharing}"], out=tmp_path / "runs")
    assert window_shares.share_of_long(result.summary["runs"][0], 20.0) == pytest.approx(share, rel=0.01)
