"""Control sockets of the daemons."""

from __future__ import annotations

import socket
from pathlib import Path

from topologies.mininet_adapter.unixctl import listens


def test_a_socket_whose_file_is_there_does_not_listen_yet(tmp_path: Path) -> None:
    path = tmp_path / "db.sock"
    assert not listens(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert path.exists() and not listens(path)
        server.listen()
        assert listens(path)
    assert not listens(path)
