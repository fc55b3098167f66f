"""Commands to a running Open vSwitch daemon over its control socket, as ``ovs-appctl`` sends them: JSON-RPC."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path

from topologies.mininet_adapter.system import CommandError


def call(path: Path, method: str, parameters: Sequence[str] = (), timeout_s: float = 10.0) -> str:
    """Have the daemon behind the socket ``path`` carry out ``method``; return its answer.

    Raises ``CommandError`` if it refuses, or does not answer within ``timeout_s``.
    """
    request = json.dumps({"id": 0, "method": method, "params": list(parameters)}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(timeout_s)
            control.connect(str(path))
            control.sendall(request)
            answer = _read(control)
    except (OSError, ValueError) as error:
        raise CommandError(f"{method} on {path.name}: {error}") from error
    if answer.get("error"):
        raise CommandError(f"{method} on {path.name}: {answer['error']}")
    return str(answer.get("result", ""))


def listens(path: Path) -> bool:
    """Whether a daemon accepts connections at ``path``; its file is there a moment before it does."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def _read(control: socket.socket) -> dict[str, object]:
    """One JSON object; only its closing brace marks its end."""
    text = b""
    while True:
        data = control.recv(1 << 16)
        if not data:
            raise ValueError("the daemon closed the connection")
        text += data
        try:
            answer = json.loads(text)
        except ValueError:
            continue
        if not isinstance(answer, dict):
            raise ValueError(f"an answer that is no object: {answer!r}")
        return answer
