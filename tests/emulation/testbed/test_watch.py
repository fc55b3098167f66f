"""A run that is watched: its page and its events while it goes on, and what is left of them afterwards."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from emulation_runs import ATTEMPTS, LOCK_WAIT_S, NOT_BELIEVABLE, ROOT, Finished, command

from testbed.results.run_directory import RunDirectory

pytestmark = pytest.mark.emulation

START_S: Final = 60
LONGER: Final = ("--set", "measure.iterations=12", "--set", "measure.time_limit=30s")
"""So that there are some samples: about eight."""
Event = tuple[str, Any]


@dataclass
class Watched:
    """A watched run that has ended: what was served meanwhile, and what the command left."""

    url: str
    page: http.client.HTTPResponse
    text: str
    events: list[Event]
    refused_after: bool
    finished: Finished

    def of(self, name: str) -> list[Any]:
        """The values of all events of this name, in order."""
        return [value for each, value in self.events if each == name]


def get(url: str, path: str = "") -> http.client.HTTPResponse:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    connection.request("GET", address.path + path)
    return connection.getresponse()


def events_of(answer: http.client.HTTPResponse) -> list[Event]:
    """All events until the server ends."""
    found = []
    while line := answer.readline().decode():
        name, data = line, answer.readline().decode()
        assert name.startswith("event: ") and data.startswith("data: ") and answer.readline() == b"\n"
        found.append((name[7:].strip(), json.loads(data[6:])))
    return found


def watch(out: Path) -> Watched:
    with (out / "error").open("w+") as error:
        run = subprocess.Popen(
            command("run", "hello.yaml", *LONGER, "--scheduler", "crux", "--watch", "--out", str(out / "runs")),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=error,
            text=True,
        )
        try:
            url = _address(out / "error", run)
            page = get(url)
            text = page.read().decode()
            events = events_of(get(url, "/events"))
            printed = run.communicate(timeout=60)[0]
        finally:
            run.kill()
            run.wait()
        done = subprocess.CompletedProcess([], run.returncode, printed, (out / "error").read_text())
    try:
        refused = get(url).status == 0
    except ConnectionRefusedError:
        refused = True
    return Watched(url, page, text, events, refused, Finished(done, out / "runs"))


def _address(error: Path, run: subprocess.Popen[str]) -> str:
    deadline = time.monotonic() + START_S
    while run.poll() is None and time.monotonic() < deadline:
        for line in error.read_text().splitlines():
            if line.startswith("watch: "):
                return line.removeprefix("watch: ")
        time.sleep(0.05)
    raise AssertionError(f"no address was told: {error.read_text()}")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    deadline = time.monotonic() + LOCK_WAIT_S
    for _ in range(ATTEMPTS):
        done = watch(tmp_path_factory.mktemp("watched"))
        while "another emulation is running" in done.finished.error and time.monotonic() < deadline:
            time.sleep(2)
            done = watch(tmp_path_factory.mktemp("watched"))
        if done.finished.status != NOT_BELIEVABLE:
            break
    return done


def test_a_watched_run_is_believable_or_says_that_the_machine_disturbed_it(watched: Watched) -> None:
    (entry,) = watched.finished.summary["runs"]
    assert watched.finished.status in (0, NOT_BELIEVABLE), watched.finished.error
    assert entry["fidelity"]["verdict"] == "ok" or entry["fidelity"]["machine_caused"], entry["fidelity"]


def test_the_page_is_served_while_the_run_goes_on(watched: Watched) -> None:
    assert watched.page.status == 200 and "hello: watching the run" in watched.text
    assert watched.page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_samples_come_about_once_a_second_and_in_order(watched: Watched) -> None:
    times = [sample["time_s"] for sample in watched.of("sample")]
    assert times == sorted(times) and len(times) >= 3
    assert [value["scheduler"] for value in watched.of("run")] == ["crux"]
    assert {"set up", "measure"} <= {value["phase"] for value in watched.of("phase")}


def test_the_links_that_carry_the_jobs_are_loaded_and_no_others_are(watched: Watched) -> None:
    directory = RunDirectory.open(watched.finished.directory)
    experiment, record = directory.read_experiment(), directory.read_record("crux")
    links = [link.name for link in experiment.fabric.network_links]
    paths = record.decisions[-1].decision.paths
    routes = {
        job.name: sorted(links.index(link) for link in {link for flow in job.flows for link in paths[flow.id]})
        for job in experiment.jobs
    }
    assert watched.of("routes")[-1] == routes
    highest: dict[int, float] = defaultdict(float)
    for sample in watched.of("sample"):
        for link, share in zip(sample["loads"][::3], sample["loads"][2::3], strict=True):
            highest[link] = max(highest[link], share / 1000)
    carrying = {link for route in routes.values() for link in route}
    assert {link for link, share in highest.items() if share > 0.1} == carrying
    # Acknowledgements go the other way: next to nothing.
    assert all(share <= 1.1 for share in highest.values())


def test_the_last_sample_agrees_with_the_summary(watched: Watched) -> None:
    last = watched.of("sample")[-1]
    for job in last["jobs"]:
        entry = watched.finished.job("crux", job["name"])
        assert job["level"] == entry["level"] and 0 < job["iterations"] <= 100
        assert job["utilization"] == pytest.approx(entry["gpu_utilization"], abs=0.1)


def test_at_the_end_the_report_is_named_and_the_page_is_gone(watched: Watched) -> None:
    name, value = watched.events[-1]
    assert name == "ended" and Path(value["report"]).is_file()
    assert watched.refused_after


def test_without_a_terminal_the_command_tells_jobs_and_links_in_lines(watched: Watched) -> None:
    lines = [line for line in watched.finished.error.splitlines() if "busiest links: " in line]
    assert lines and "big " in lines[-1] and "small " in lines[-1]
