"""The lock that keeps runs apart, and the launcher that has root where the command has not."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.engines.emulation.namespaces import sandbox
from testbed.engines.emulation.namespaces.sandbox import SANDBOX, only_run_on_this_machine, spawn
from testbed.engines.emulation.privileged import launcher as launcher_module
from testbed.engines.emulation.privileged.launcher import Launcher
from testbed.errors import CannotRunError
from testbed.machine import capabilities, launcher_requests


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lock"
    monkeypatch.setattr(sandbox, "LOCK", path)
    monkeypatch.setattr(launcher_module, "LOCK", path)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A launcher in a thread, in place of one that is root."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(launcher_module, "probe_in_namespace", lambda names: dict.fromkeys(names, True))
    monkeypatch.setenv(launcher_requests.PLACE, str(mine.detach()))
    launcher_requests._connection.cache_clear()
    serving = threading.Thread(target=Launcher(theirs).serve)
    serving.start()
    connection = launcher_requests._connection()
    assert connection is not None
    yield
    connection.close()
    serving.join()
    theirs.close()
    launcher_requests._connection.cache_clear()


@pytest.fixture(params=["by itself", "by the launcher"])
def either(request: pytest.FixtureRequest) -> None:
    """Done by the process itself, or by its launcher."""
    if request.param == "by the launcher":
        request.getfixturevalue("asked")


def test_a_second_run_is_refused_until_the_first_has_ended(lock: Path, either: None) -> None:
    refused = pytest.raises(CannotRunError, match="another emulation is running")
    with only_run_on_this_machine(), refused, only_run_on_this_machine():
        pass
    with only_run_on_this_machine():
        pass


def test_only_its_owner_may_open_the_lock(lock: Path) -> None:
    with only_run_on_this_machine():
        assert lock.stat().st_mode & 0o777 == 0o600


def test_a_name_that_any_user_can_take_keeps_nobody_from_running(lock: Path) -> None:
    with socket.socket(socket.AF_UNIX) as taken:
        with contextlib.suppress(OSError):  # somebody has it already
            taken.bind("\0testbed-emulation")
        with only_run_on_this_machine():
            pass


def test_a_place_without_room_for_the_lock_is_one_line(
    lock: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "LOCK", tmp_path / "none" / "lock")
    refused = pytest.raises(CannotRunError, match="No such file or directory: an emulation locks this file")
    with refused, only_run_on_this_machine():
        pass


ECHO = "import sys; print(sys.stdin.read()); print('logged', file=sys.stderr); sys.stdout.flush(); {then}"


@pytest.fixture
def in_place_of_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is started instead of namespaces: a Python that says what it was asked, and then goes on with ``then``."""
    program = {"then": "pass"}

    def start(module: str, mark: str, given: int, said: int, log: int) -> subprocess.Popen[str]:
        code = ECHO.format(**program)
        return subprocess.Popen([sys.executable, "-c", code], stdin=given, stdout=said, stderr=log, text=True)

    monkeypatch.setattr(sandbox, "start", start)
    monkeypatch.setattr(launcher_module, "start", start)
    return program


def test_a_run_reads_its_request_and_is_heard(
    either: None, in_place_of_a_sandbox: dict[str, str], tmp_path: Path
) -> None:
    child = spawn(SANDBOX, b"the request", tmp_path / "log")
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.read() == "the request\n"
    child.wait()
    assert (tmp_path / "log").read_text() == "logged\n"


def test_a_run_that_nobody_wants_any_more_is_ended(
    either: None, in_place_of_a_sandbox: dict[str, str], tmp_path: Path
) -> None:
    in_place_of_a_sandbox["then"] = "import time; time.sleep(600)"
    child = spawn(SANDBOX, b"", tmp_path / "log")
    assert child.stdout is not None
    with child.stdout:
        child.stdout.readline()
        child.kill()
        child.wait()
        assert child.stdout.read() == ""


@pytest.mark.parametrize(
    "message",
    [b"no JSON", b"[]", b'{"what": "shell"}', b'{"what": "run", "mark": "x\\n"}', b'{"what": "run", "mark": "1-2-3"}'],
)
def test_what_cannot_be_asked_for_is_refused_and_the_launcher_goes_on(
    asked: None, message: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    connection = launcher_requests._connection()
    assert connection is not None
    mine, theirs = socket.socketpair()
    with mine, theirs:
        socket.send_fds(connection, [message], [theirs.fileno()])
        theirs.close()
        assert mine.recv(1) == b""
    assert launcher_requests.ask("probe", names=["veth"]) == {"veth": True}
    assert "launcher: " in capfd.readouterr().err


def test_what_the_kernel_can_do_is_asked_of_the_launcher(asked: None) -> None:
    assert capabilities.probe_in_namespace(("veth", "ets")) == {"veth": True, "ets": True}
