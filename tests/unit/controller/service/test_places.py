"""The files of the controller: its socket and its token take no place that holds something else."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.ryu_compat import hub
from controller.schedulers.registry import create
from controller.service.rest import RestServer, listen_tcp, listen_unix
from controller.service.service import Service
from controller.service.token_file import TokenFile

ROOT = Path(__file__).parents[4]


def fill(place: Path, kind: str) -> None:
    """Put something at ``place``."""
    if kind == "file":
        place.write_text("my thesis")
    elif kind == "empty file":
        place.touch()
    elif kind == "directory":
        place.mkdir()
    elif kind == "link":
        place.with_suffix(".target").write_text("my thesis")
        place.symlink_to(place.with_suffix(".target"))
    elif kind == "dangling link":
        place.symlink_to(place.with_suffix(".nowhere"))
    elif kind == "pipe":
        os.mkfifo(place)


KINDS = ["file", "empty file", "directory", "link", "dangling link", "pipe"]


def listing(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything in ``folder``: inode, mode, content."""
    found = {path.name: (path, path.lstat()) for path in folder.iterdir()}
    return {
        name: (status.st_ino, status.st_mode, path.read_text() if stat.S_ISREG(status.st_mode) else "")
        for name, (path, status) in found.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_socket_replaces_nothing_but_a_socket(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "rest"
    fill(place, kind)
    before = listing(tmp_path)
    with pytest.raises(OSError) as refusal:
        listen_unix(str(place))
    assert str(refusal.value) == (
        f"REST socket {place} cannot be used: it exists and is no socket, expected a path that is free"
    )
    assert listing(tmp_path) == before


def test_a_stale_socket_is_replaced_and_only_its_owner_may_use_it(tmp_path: Path) -> None:
    place = str(tmp_path / "rest")
    listen_unix(place).close()
    with listen_unix(place), socket.socket(socket.AF_UNIX) as client:
        assert stat.S_IMODE(os.lstat(place).st_mode) == 0o600
        client.connect(place)


def test_a_socket_that_is_served_stays(tmp_path: Path) -> None:
    place = str(tmp_path / "rest")
    with listen_unix(place), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(OSError, match="another process serves it"):
            listen_unix(place)
        client.connect(place)


@pytest.mark.parametrize("place", ["no/such/folder/rest", "x" * 200])
def test_a_place_for_no_socket_is_one_line(tmp_path: Path, place: str) -> None:
    with pytest.raises(OSError, match=r"^REST socket .* cannot be used: ") as refusal:
        listen_unix(str(tmp_path / place))
    assert len(str(refusal.value).splitlines()) == 1


def test_a_port_in_use_is_one_line_also_for_the_same_user() -> None:
    with listen_tcp(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"^REST port {port} cannot be used: Address already in use$"):
            listen_tcp(port)
    with pytest.raises(OSError, match=r"^REST port 99999 cannot be used: "):
        listen_tcp(99999)


def test_a_token_is_new_at_every_start_and_for_its_user_only(tmp_path: Path) -> None:
    place = tmp_path / "token"
    before = os.umask(0)
    try:
        tokens = [TokenFile(place).write() for _ in range(3)]
    finally:
        os.umask(before)
    assert len(set(tokens)) == 3 and all(re.fullmatch(r"controller-[\w-]{43}", token) for token in tokens)
    assert place.read_text() == f"{tokens[-1]}\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_file_replaces_nothing_but_a_token_file(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "token"
    fill(place, kind)
    before = listing(tmp_path)
    with pytest.raises(OSError) as refusal:
        TokenFile(place).write()
    assert str(refusal.value) == (
        f"token file {place} cannot be written: it exists and holds no token, expected a path that is free"
    )
    assert listing(tmp_path) == before


def test_a_token_file_goes_with_its_controller_but_not_with_another(tmp_path: Path) -> None:
    first, second = TokenFile(tmp_path / "token"), TokenFile(tmp_path / "token")
    first.write()
    second.write()
    first.remove()
    assert (tmp_path / "token").exists()
    second.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_token_in_no_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^token file .*/none/token cannot be written: No such file or directory$"):
        TokenFile(tmp_path / "none" / "token").write()


@pytest.mark.parametrize("option", ["--rest-socket", "--token-file"])
def test_the_command_says_so_in_one_line_with_status_1(tmp_path: Path, option: str) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("my thesis")
    with listen_tcp(0) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "controller", "--scheduler", "ecmp", f"--openflow-port={port}", "--rest-port=0"]
    done = subprocess.run(
        [*command, option, str(place)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("controller: ") and str(place) in line and line.endswith("expected a path that is free")
    assert place.read_text() == "my thesis"


class Listener:
    """Accepts nobody: no descriptors are left, the client has gone; then it is closed."""

    def __init__(self) -> None:
        self.errors = [errno.EMFILE, errno.ECONNABORTED]

    def accept(self) -> Any:
        raise OSError(self.errors.pop(0) if self.errors else errno.EBADF, "no")

    def fileno(self) -> int:
        return 3 if self.errors else -1


def test_a_listener_that_cannot_accept_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(hub, "sleep", waited.append)
    listener = Listener()
    RestServer(Service(MemoryNetwork(), create("ecmp")), hub.Semaphore(1))._accept(listener)
    assert listener.errors == [] and waited == [0.1]
