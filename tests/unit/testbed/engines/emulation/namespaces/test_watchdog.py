"""A run that says nothing is ended from outside, and what it needs and loses ends it from inside: one line each."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.engines.emulation.namespaces import liveness, watchdog
from testbed.engines.emulation.namespaces.liveness import Guard, Heartbeat, ended_how
from testbed.engines.emulation.namespaces.watchdog import Watchdog
from testbed.errors import RunFailedError

LOG = Path("testbed.log")
INSIDE = """
import os, sys, time
def tell(text): os.write(1, text.encode())
{}
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "SILENCE_S", 2)
    monkeypatch.setattr(watchdog, "START_S", 20)


def child(program: str) -> subprocess.Popen[str]:
    """A process whose one child stands for the first process of a run."""
    inside = [sys.executable, "-S", "-c", INSIDE.format(program)]
    return subprocess.Popen(
        ["sh", "-c", '"$@" & wait $!', "sh", *inside], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def first_of(process: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        if process.stdout is not None:
            process.stdout.close()


def message(phase: str) -> str:
    return json.dumps({"phase": phase})


def test_messages_arrive_as_they_are_told_and_signs_of_life_do_not(started: list[subprocess.Popen[str]]) -> None:
    text = f"{message('set up')}\n{message('alive')}\n{message('measure')}\n"
    run = child(f"tell({text[:30]!r}); time.sleep(0.05); tell({text[30:]!r})")
    started.append(run)
    watched = Watchdog(run, LOG)
    assert [each["phase"] for each in watched.messages()] == ["set up", "measure"]
    watched.wait()
    watched.end()


def test_a_run_that_is_stopped_is_ended_in_one_line_and_nothing_is_left(started: list[subprocess.Popen[str]]) -> None:
    run = child(f"tell({message('measure')!r} + chr(10)); time.sleep(600)")
    started.append(run)
    watched = Watchdog(run, LOG)
    messages = watched.messages()
    assert next(messages)["phase"] == "measure"
    first = first_of(run)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(RunFailedError) as raised:
        next(messages)
    watched.end()
    assert str(raised.value) == (
        f"the run said nothing for 2 s: its first process ({first}) is stopped, see testbed.log"
    )
    assert not Path(f"/proc/{first}/cmdline").exists() or Path(f"/proc/{first}/cmdline").read_bytes() == b""


def test_a_run_that_is_stuck_writes_to_its_log_where_it_stood(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    log = tmp_path / "testbed.log"
    run = child(
        f"""
import faulthandler
faulthandler.register({int(watchdog.SHOW_STACKS)}, open({str(log)!r}, "w"))
def stuck(): time.sleep(600)
tell({message("measure")!r} + chr(10))
stuck()"""
    )
    started.append(run)
    watched = Watchdog(run, log)
    with pytest.raises(RunFailedError, match="does not answer"):
        list(watched.messages())
    watched.end()
    assert "in stuck" in log.read_text()


def test_a_run_whose_first_process_is_killed_says_so(started: list[subprocess.Popen[str]]) -> None:
    run = child(f"tell({message('measure')!r} + chr(10)); os.kill(os.getpid(), 9)")
    started.append(run)
    watched = Watchdog(run, LOG)
    assert len(list(watched.messages())) == 1
    with pytest.raises(
        RunFailedError, match=r"first process ended before its record was there: .*memory ran out.*testbed.log"
    ):
        watched.wait()
    watched.end()


def test_a_loop_that_does_not_turn_is_not_called_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "BEAT_S", 0.01)
    told, heard = [], threading.Event()

    def tell(phase: str) -> None:
        told.append(phase)
        heard.set()

    async def run() -> None:
        heart = Heartbeat(tell)
        await asyncio.to_thread(heard.wait)
        heart.measuring(True)
        threading.Event().wait(0.1)  # the loop is blocked, longer than while iterations are measured
        said = len(told)
        threading.Event().wait(0.1)
        assert len(told) == said
        heart.stop()
        threading.Event().wait(0.1)
        assert len(told) > said  # at its end a loop may be blocked as by a command

    asyncio.run(run())


def guarded(ended: str | None = None, stopped: bool = False) -> Guard:
    return Guard(lambda: ended, lambda: {"the worker of host h0": os.getpid()} if stopped else {})


def test_a_process_that_has_ended_ends_the_work_at_once() -> None:
    ends: list[str | None] = [None, None, "ovsdb-server ended by signal 9"]
    guard = Guard(lambda: ends.pop(0) if len(ends) > 1 else ends[0], dict)
    cancelled = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(RunFailedError, match=r"^ovsdb-server ended by signal 9"):
        patch.setattr(liveness, "LOOK_S", 0.0)
        asyncio.run(guard.over(work()))
    assert cancelled == [True]


def test_work_that_ends_by_itself_is_returned_or_raised() -> None:
    async def work(value: int) -> int:
        await asyncio.sleep(0)
        if value < 0:
            raise ValueError("negative")
        return value

    assert asyncio.run(guarded().over(work(3))) == 3
    with pytest.raises(ValueError, match="negative"):
        asyncio.run(guarded().over(work(-1)))


def test_a_stopped_process_ends_a_run_that_waits_for_it_and_not_one_that_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "state_of", lambda *_: "T")
    guard = guarded(stopped=True)
    guard.waiting = False
    for now in (10.0, 11.0, 14.0):
        guard.look(now)
    with pytest.raises(RunFailedError, match=r"^the worker of host h0 has been stopped for 4 s \(by a signal, "):
        guard.refuse_stopped(14.0)
    guard.waiting = True
    with pytest.raises(RunFailedError, match="has been stopped for 5 s"):
        guard.look(15.0)
    monkeypatch.setattr(liveness, "state_of", lambda *_: "S")
    guard.look(16.0)
    monkeypatch.setattr(liveness, "state_of", lambda *_: "T")
    guard.look(17.0)


def test_how_a_process_ended_is_said_in_words() -> None:
    assert (ended_how(1), ended_how(-9)) == ("ended with status 1", "was ended by a signal (Killed)")


def test_a_run_has_ended_with_its_first_process_even_if_the_one_that_waits_for_it_is_stopped(
    started: list[subprocess.Popen[str]],
) -> None:
    run = child(f"tell({message('measure')!r} + chr(10)); time.sleep(0.3); tell({message('report')!r} + chr(10))")
    started.append(run)
    watched = Watchdog(run, LOG)
    messages = watched.messages()
    assert next(messages)["phase"] == "measure"
    os.kill(run.pid, signal.SIGSTOP)
    assert [each["phase"] for each in messages] == ["report"]
    watched.wait()
    watched.end()
    assert run.returncode == -signal.SIGKILL
