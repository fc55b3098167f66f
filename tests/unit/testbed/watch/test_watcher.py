"""What a watched command passes on: to the page, to a terminal, and into lines."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from testbed.api import prepare
from testbed.cli.main import main
from testbed.errors import RunFailedError
from testbed.watch.messages import JobState, LiveSample, message_of
from testbed.watch.watcher import Watcher

EXPERIMENTS = prepare("hello", engine="flow").experiments
JOB = JobState("big", 4, "running", 0, 3, 5, 0.75)
FIRST = LiveSample(1.0, 0.75, (JOB,), (0, 0, 500), {"big": (0, 4)})
SECOND = LiveSample(2.0, 0.8, (JOB,), (4, 0, 900))


def listen(watcher: Watcher) -> http.client.HTTPResponse:
    assert watcher.server is not None
    address = urlsplit(watcher.server.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request("GET", f"{address.path}/events")
    return connection.getresponse()


def events(answer: http.client.HTTPResponse) -> list[tuple[str, Any]]:
    """All events until the server ends."""
    blocks = answer.read().decode().split("\n\n")[:-1]
    return [(name[7:], json.loads(data[6:])) for name, data in (block.split("\n") for block in blocks)]


def test_the_page_is_told_the_run_its_samples_and_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher() as watcher:
        watcher.begin(EXPERIMENTS)
        assert watcher.server is not None
        assert capsys.readouterr().err == f"watch: {watcher.server.url}\n"
        listening = listen(watcher)
        watcher.phase("ecmp", "set up")
        watcher.phase("ecmp", "measure")
        watcher.show(message_of(FIRST))
        watcher.ended(tmp_path)
    told = events(listening)
    assert [name for name, _ in told] == ["run", "phase", "phase", "routes", "sample", "ended"]
    assert dict(told)["routes"] == {"big": [0, 4]} and dict(told)["sample"]["loads"] == [0, 0, 500]
    assert dict(told)["ended"] == {"report": str(tmp_path / "report.html")}


def test_a_run_that_fails_ends_without_a_report() -> None:
    with pytest.raises(RunFailedError), Watcher() as watcher:
        watcher.begin(EXPERIMENTS)
        listening = listen(watcher)
        raise RunFailedError("the machine went away")
    assert events(listening) == [("ended", {"report": None})]


def test_the_terminal_shows_the_last_sample_with_the_routes_told_before() -> None:
    with Watcher() as watcher:
        watcher.begin(EXPERIMENTS)
        assert watcher.screen() is None and watcher.line() == ""
        watcher.show(message_of(FIRST))
        watcher.show(message_of(SECOND))
        busiest = EXPERIMENTS[0].fabric.network_links[4].name
        assert watcher.line() == f"GPUs 80 % busy; big 3/5, level 0, 75 %; busiest links: {busiest} 90 %"
        assert watcher.screen() is watcher.screen()


def test_the_next_scheduler_begins_with_an_empty_screen() -> None:
    with Watcher() as watcher:
        watcher.begin(EXPERIMENTS)
        watcher.show(message_of(FIRST))
        watcher.phase("crux", "set up")
        assert watcher.screen() is None


def test_a_message_that_is_no_sample_ends_the_run_in_one_line() -> None:
    with Watcher() as watcher:
        watcher.begin(EXPERIMENTS)
        with pytest.raises(
            RunFailedError, match=r"^a sample of the run is not understood \(sample: expected an object"
        ):
            watcher.show({"sample": 3})


def test_the_flow_engine_has_nothing_to_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "hello.yaml", "--engine", "flow", "--watch", "--scheduler", "ecmp", "--set", "checks=[]"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "watch: the flow engine computes its results at once, there is nothing to watch\n" in said
    assert "http://" not in said
