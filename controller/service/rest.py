"""The northbound interface: REST with JSON over loopback TCP and, if asked for, a Unix socket.

A thread of the hub per connection (green under Ryu, real under os-ken), one request at a time in
the service.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from controller.dataplane.ryu_compat import hub
from controller.service.service import Answer, RequestError, Service

_log = logging.getLogger("controller")

LARGEST_BODY = 256 * 2**20
"""Bytes; a fabric of thousands of hosts is some 10 MB."""


def route(service: Service, method: str, target: str, body: Callable[[], object]) -> Answer:
    """Return the answer of ``service`` to ``method`` on ``target`` (path and query). Raises ``RequestError``."""
    parts = urlsplit(target)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    steps = [unquote(step) for step in parts.path.split("/") if step]
    match (method, steps):
        case ("PUT", ["fabric"]):
            return service.put_fabric(body())
        case ("GET", ["state"]):
            return service.get_state()
        case ("POST", ["jobs"]):
            return service.post_job(body())
        case ("DELETE", ["jobs", name]):
            return service.delete_job(name, query.get("apply", "now"))
        case ("POST", ["profiles"]):
            return service.post_profile(body())
        case ("PUT", ["throughput"]):
            return service.put_throughput(body())
        case ("POST", ["commit"]):
            return service.post_commit(body())
        case ("GET", ["rules"]):
            return service.get_rules()
        case ("GET", ["check"]):
            return service.get_check()
        case ("GET", ["taken"]):
            return service.get_taken()
    raise RequestError(404, f"no resource {method} {parts.path}")


class RestServer:
    """Serves ``service`` on a listening socket; ``lock`` keeps requests apart."""

    def __init__(self, service: Service, lock: Any) -> None:
        self._service = service
        self._lock = lock

    def listen(self, port: int) -> int:
        """Listen on loopback at ``port`` (0: any free one), serve, and return the port. ``OSError`` if taken."""
        listener = hub.listen(("127.0.0.1", port))
        self._serve(listener)
        return int(listener.getsockname()[1])

    def listen_unix(self, path: str) -> None:
        """Listen on the Unix socket ``path``, of its owner only; a stale one is replaced."""
        if os.path.exists(path):
            os.unlink(path)
        listener = hub.listen(path, family=socket.AF_UNIX)
        os.chmod(path, 0o600)
        self._serve(listener)

    def _serve(self, listener: Any) -> None:
        hub.spawn(self._accept, listener)

    def _accept(self, listener: Any) -> None:
        while True:
            connection, _ = listener.accept()
            hub.spawn(self._handle, connection)

    def _handle(self, connection: Any) -> None:
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            _Handler(connection, self)
        except OSError:
            pass  # the client has gone
        finally:
            connection.close()

    def answer(self, method: str, target: str, body: Callable[[], object]) -> tuple[int, Answer]:
        """Return HTTP status and JSON answer; whatever goes wrong is one line under ``error``."""
        try:
            with self._lock:
                return 200, route(self._service, method, target, body)
        except RequestError as error:
            if error.status >= 500:  # the client gets the line; why a scheduler raised stands in the log
                _log.error("%s %s", method, target, exc_info=error)
            return error.status, {"error": str(error)}
        except Exception as error:  # a request must never take the controller down
            _log.exception("%s %s", method, target)
            return 500, {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def __init__(self, connection: Any, rest: RestServer) -> None:
        self._rest = rest
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type]

    def _answer(self) -> None:
        raw = self._read()
        status, answer = self._rest.answer(self.command, self.path, lambda: _parse(raw))
        text = json.dumps(answer, sort_keys=True).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def _read(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests are answered, not narrated."""


def _parse(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from error
