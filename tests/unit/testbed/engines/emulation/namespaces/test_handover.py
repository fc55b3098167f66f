"""What goes in and out of a run's namespaces: the very same values, and nothing that a file could say instead."""

from __future__ import annotations

import json
import os
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.api import prepare
from testbed.engines.emulation import engine as engine_module
from testbed.engines.emulation.engine import EmulationEngine
from testbed.engines.emulation.namespaces import handover
from testbed.engines.emulation.namespaces.handover import (
    MessageWriter,
    Request,
    messages_of,
    read_answer,
    read_request,
    request_of,
    sealed,
)
from testbed.engines.emulation.namespaces.sandbox import spawn
from testbed.engines.flow.engine import FlowEngine
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.results.record import RunRecord


def experiments(name: str) -> tuple[Experiment, ...]:
    return prepare(name, engine="flow").experiments


@pytest.fixture(scope="module")
def record() -> RunRecord:
    (made, *_) = prepare("hello", engine="flow", overrides=["measure.iterations=1"]).experiments
    return FlowEngine().run(made, Path(), lambda message: None)


@pytest.mark.parametrize("name", ["hello", "clos96", "arrivals", "philly-split", "lina"])
def test_the_inside_runs_the_very_experiment(name: str) -> None:
    for experiment in experiments(name):
        there = replace(experiment, datapath="nftables")
        assert read_request(request_of(Request(there, watched=True))) == Request(there, watched=True)


def said_by(answer: RunRecord | Exception) -> list[dict[str, Any]]:
    return list(messages_of(answer))


def test_the_outside_gets_the_very_record(record: RunRecord) -> None:
    assert read_answer(said_by(record), "the log") == record


def test_what_went_wrong_inside_is_said_outside() -> None:
    with pytest.raises(RunFailedError, match=r"^no such switch$"):
        read_answer(said_by(ValueError("no such switch")), "the log")


def test_an_error_that_nobody_foresaw_says_what_kind_it_is_and_where_to_look() -> None:
    with pytest.raises(
        RunFailedError, match=r"^KeyError: 'a flow'; please report; details in testbed\.log of the run$"
    ):
        read_answer(said_by(KeyError("a flow")), "the log")


@pytest.mark.parametrize("answer", ["", "{}", "[]", "3", '{"record": {}}', '{"record": 3, "iterations": ""}'])
def test_an_answer_that_is_no_record_is_an_error_that_names_the_log(answer: str) -> None:
    with pytest.raises(RunFailedError, match="see LOG"):
        read_answer([{"piece": 0, "pieces": 1, "text": answer}], "LOG")


@pytest.mark.parametrize("message", [{}, {"text": "{}"}, {"piece": 0, "pieces": "some", "text": "{}"}])
def test_a_message_that_is_no_piece_of_a_record_is_an_error_that_names_the_log(message: dict[str, Any]) -> None:
    with pytest.raises(RunFailedError, match="see LOG"):
        read_answer([message], "LOG")


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_an_answer_of_which_a_piece_is_lost_is_no_record(
    record: RunRecord, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_PIECE", 1000)
    messages = said_by(record)
    del messages[lost]
    arrived = rf"\({len(messages)} of its {len(messages) + 1} pieces have arrived\), see LOG$"
    with pytest.raises(RunFailedError, match=arrived):
        read_answer(messages, "LOG")


def test_a_row_that_is_not_understood_is_named(record: RunRecord) -> None:
    answer = json.loads("".join(each["text"] for each in said_by(record)))
    header, first, *others = answer["links"].splitlines()
    answer["links"] = "\n".join([header, first, "1.0,h0", *others])
    with pytest.raises(RunFailedError, match=r"\(links, line 3: 2 cells instead of 8: '1.0,h0'\), see LOG$"):
        read_answer([{"piece": 0, "pieces": 1, "text": json.dumps(answer)}], "LOG")


def test_a_run_that_says_nothing_has_no_record() -> None:
    with pytest.raises(RunFailedError, match=r"^the run ended without a record, see LOG$"):
        read_answer([], "LOG")


def test_lines_of_threads_that_tell_at_the_same_time_arrive_whole() -> None:
    read, write = os.pipe()
    writer, text = MessageWriter(write), "x" * 40_000

    def tell(name: int) -> None:
        for number in range(20):
            writer.write({"name": name, "number": number, "text": text if name else ""})

    threads = [threading.Thread(target=tell, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=lambda: ([thread.join() for thread in threads], os.close(write)))
    closer.start()
    with os.fdopen(read) as lines:
        arrived = [json.loads(line) for line in lines]
    closer.join()
    assert sorted((each["name"], each["number"]) for each in arrived) == [(n, k) for n in range(4) for k in range(20)]
    assert all(each["text"] == (text if each["name"] else "") for each in arrived)


def test_a_request_cannot_be_changed_on_its_way() -> None:
    with sealed(b"experiment") as descriptor:
        assert os.read(descriptor, 100) == b"experiment"
        with pytest.raises(OSError):
            os.pwrite(descriptor, b"E", 0)
        with pytest.raises(OSError):
            os.ftruncate(descriptor, 0)


def test_a_pickle_is_no_request() -> None:
    with pytest.raises(ValueError):
        read_request(pickle.dumps(experiments("hello")[0]))


class _Planted:
    """Code that runs when somebody unpickles it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_a_file_that_others_put_into_the_run_directory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"

    class Sandbox:
        """Ends without an answer; while it runs, somebody writes into the run directory."""

        pid = os.getpid()

        def __init__(self) -> None:
            said, write = os.pipe()
            os.write(write, b'{"phase": "set up"}\n{"phase": "answer", "te')
            os.close(write)
            self.stdout = os.fdopen(said)

        def kill(self) -> None:
            """Nothing to end."""

        def wait(self, timeout: float | None = None) -> int:
            (tmp_path / ".handover").write_bytes(pickle.dumps(_Planted(marker)))
            self.stdout.close()
            return 0

    monkeypatch.setattr(engine_module, "spawn", lambda module, request, log: Sandbox())
    engine = EmulationEngine()
    engine._alone = True
    with pytest.raises(RunFailedError, match="the run ended without a record, see "):
        engine.run(experiments("hello")[0], tmp_path, lambda message: None)
    assert not marker.exists()


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "testbed.log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=r"testbed\.log"):
        spawn("nothing", b"", tmp_path / "testbed.log")
    assert (tmp_path / "victim").read_text() == "mine\n"
