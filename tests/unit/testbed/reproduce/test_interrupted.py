"""Ctrl-C while processes compute: one line that says how to go on, at once, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest


def wait_for_children(parent: int) -> None:
    """Until a process computes, or is about to; the one that keeps track of semaphores does not count."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()) >= 2:
            return
        time.sleep(0.05)
    pytest.fail("no process was started")


def nobody_left(group: int) -> bool:
    """Whether all processes of a group end; the one that keeps track of semaphores needs a moment."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("experiment", [("crux-fig23", "--days", "14"), ("crux-fig16", "--cases", "100000")])
def test_an_interrupt_says_how_to_go_on_and_nothing_else(
    experiment: tuple[str, ...], presses: int, tmp_path: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    command = [sys.executable, "-m", "testbed", "reproduce", *experiment, "--jobs", "2", "--out", str(tmp_path)]
    process = start_child(command, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        wait_for_children(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everybody at once
        first += process.stderr.readline()
        if presses == 2:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1 or (presses == 2 and process.returncode == -signal.SIGINT)
        assert "..." in first or "elapsed" in first
        assert "Traceback" not in said
        assert "testbed: interrupted; what is finished is kept, go on with: " in first + said
        assert nobody_left(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_child_hears_an_interrupt_where_the_tests_ignore_it(
    start_child: Callable[..., subprocess.Popen[str]],
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    try:
        command = [sys.executable, "-c", "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.1)"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with start_child(command, **pipes) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == -signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, before)
