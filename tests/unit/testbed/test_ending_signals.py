"""A signal that ends a command ends it with one line, and is the system's again afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import ending_signals
from testbed.cli.main import explain

ROOT = Path(__file__).parents[3]
ENDING = ["SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"]
WAIT = """
import sys, time
from testbed.cli import main, validate
def wait(arguments):
    print("waiting", flush=True)
    while True:  # a signal just before a system call that blocks is heard when that returns
        time.sleep(0.1)
validate.run = wait
sys.exit(main.main(["validate", "hello"]))
"""


@pytest.mark.parametrize("name", ENDING)
def test_a_command_that_is_ended_by_a_signal_says_so_in_one_line(name: str) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.Signals[name], signal.SIG_DFL),  # under nohup SIGHUP is ignored
    )
    assert command.stdout is not None and command.stdout.readline() == "waiting\n"
    command.send_signal(signal.Signals[name])
    _, error = command.communicate()
    assert (command.returncode, error) == (1, f"testbed: ended by {name}\n")


def test_what_is_ignored_stays_ignored_and_all_is_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"), ending_signals.caught():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_forked_process_is_ended_by_the_system() -> None:
    with ending_signals.caught():
        ending_signals.leave_to_the_system()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_is_still_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(KeyboardInterrupt()) == 1
    assert capsys.readouterr().err == "testbed: interrupted\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_end_no_command(closed: str, tmp_path: Path) -> None:
    run = f'exec "$0" -m testbed run hello --engine flow --out "$1" --allow-degraded {closed}'
    done = subprocess.run(["sh", "-c", run, sys.executable, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (directory,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert not (directory / "UNFINISHED").exists()


def test_an_output_without_room_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "schema"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "testbed: output cannot be written: No space left on device\n")
