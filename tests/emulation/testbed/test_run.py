"""A run, end to end, on Mininet, Open vSwitch, the controller and real bytes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from emulation_runs import Finished, default_and_userspace, run_to_end, run_until_believable

pytestmark = pytest.mark.emulation


@pytest.fixture(scope="module", params=default_and_userspace())
def hello(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_until_believable("hello.yaml", tmp_path_factory.mktemp("hello"), "--json", "--datapath", request.param)


def test_hello_ends_well_and_believable_or_says_that_the_machine_disturbed_it(hello: Finished) -> None:
    caused_by_machine = all(
        entry["fidelity"]["verdict"] == "ok" or entry["fidelity"]["machine_caused"] for entry in hello.summary["runs"]
    )
    assert hello.status in (0, 4), hello.error
    assert hello.status == 0 or caused_by_machine, hello.summary["runs"][0]["fidelity"]


def test_the_run_directory_has_every_file_of_the_contract(hello: Finished) -> None:
    expected = {"manifest.json", "scenario.yaml", "summary.json", "report.html"}
    assert expected <= {path.name for path in hello.directory.iterdir()}
    assert not (hello.directory / "plots").exists()
    assert not (hello.directory / "UNFINISHED").exists()
    for scheduler in ("ecmp", "crux"):
        names = {path.name for path in (hello.directory / scheduler).iterdir()}
        assert {
            "iterations.csv",
            "links.csv",
            "messages.csv",
            "decisions.json",
            "timeline.json",
            "testbed.log",
        } <= names


def test_every_gpu_of_every_job_has_its_iterations(hello: Finished) -> None:
    with (hello.directory / "crux" / "iterations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["gpu"] for row in rows} == {f"h{host}g{gpu}" for host in (0, 1) for gpu in range(4)}
    for row in rows:
        parts = sum(float(row[name]) for name in ("compute_s", "exposed_s", "straggler_s"))
        assert parts == pytest.approx(float(row["end_s"]) - float(row["start_s"]), abs=2e-3)


def test_bytes_on_the_links_are_the_bytes_of_the_jobs(hello: Finished) -> None:
    """What host NICs sent in all, over what the iterations that ended must have sent: one iteration more at most."""
    with (hello.directory / "crux" / "links.csv").open() as file:
        sent = sum(float(row["bytes"]) for row in csv.DictReader(file) if row["link"] == "h0n0p0->tor0")
    with (hello.directory / "crux" / "iterations.csv").open() as file:
        ended = {row["iteration"] for row in csv.DictReader(file) if row["job"] == "big"}
    assert len(ended) * 3e9 * 0.98 <= sent <= (len(ended) + 1) * 3e9 * 1.02


def test_every_message_has_a_row_and_those_that_share_a_link_are_slower(hello: Finished) -> None:
    """Under ECMP both jobs of hello share the link between their ToRs; under Crux the larger one goes first."""
    slowdowns: dict[str, list[float]] = {}
    for scheduler in ("ecmp", "crux"):
        rows = [row for row in hello.rows(scheduler, "messages.csv") if row["job"] == "big"]
        iterations = {row["iteration"] for row in hello.rows(scheduler, "iterations.csv") if row["job"] == "big"}
        assert {row["iteration"] for row in rows} >= iterations
        assert all(float(row["bytes"]) == 3e9 for row in rows)
        took = [float(row["end_s"]) - float(row["start_s"]) for row in rows if row["iteration"] in iterations]
        slowdowns[scheduler] = [seconds / float(rows[0]["empty_network_s"]) for seconds in took]
    assert min(slowdowns["crux"]) > 0.97
    assert max(slowdowns["ecmp"]) > 1.2 > min(slowdowns["crux"])


def test_nothing_was_lost_or_reordered(hello: Finished) -> None:
    for entry in hello.summary["runs"]:
        assert entry["fidelity"]["unintended_drops"] == 0
        assert not any("out of order" in reason for reason in entry["fidelity"]["reasons"])


def test_the_same_seed_gives_the_same_decisions_byte_for_byte(hello: Finished, tmp_path: Path) -> None:
    again = run_to_end("hello.yaml", tmp_path, "--set", "measure.iterations=1")
    for scheduler in ("ecmp", "crux"):
        first, second = (
            json.dumps([row["decision"] if "decision" in row else _bare(row) for row in run.decisions(scheduler)])
            for run in (hello, again)
        )
        assert first == second


def _bare(row: dict[str, object]) -> dict[str, object]:
    """A decision without the moments at which it came and was confirmed."""
    return {key: value for key, value in row.items() if key not in ("time_s", "confirmed_s")}
