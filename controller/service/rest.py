"""The northbound interface: REST with JSON over loopback TCP and, if asked for, a Unix socket.

A thread of the hub per connection (green under Ryu, real under os-ken), one request at a time in
the service.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from controller.dataplane.ryu_compat import hub
from controller.service.json_codec import encode, fabric_from_json
from controller.service.messages import (
    RENAMED_ROUTES,
    Answer,
    ErrorAnswer,
    TakenAnswer,
    apply_from_text,
    commit_request_from_json,
    job_request_from_json,
    link_request_from_json,
    profile_request_from_json,
    throughput_from_json,
    verification_request_from_json,
)
from controller.service.service import RequestError, Service

T = TypeVar("T")

_log = logging.getLogger("controller")

LARGEST_BODY = 256 * 2**20
"""Bytes; a fabric of thousands of hosts is some 10 MB."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it leaves: HTTP status, JSON-ready body, and headers beside those of every answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


def route(service: Service, method: str, target: str, body: Callable[[], object]) -> Answer:
    """Return the answer of ``service`` to ``method`` on ``target`` (path and query). Raises ``RequestError``."""
    match (method, _steps(target)):
        case ("PUT", ["fabric"]):
            return service.put_fabric(_read(fabric_from_json, body()))
        case ("GET", ["state"]):
            return service.get_state()
        case ("POST", ["jobs"]):
            return service.post_job(_read(job_request_from_json, body()))
        case ("DELETE", ["jobs", name]):
            return service.delete_job(name, _read(apply_from_text, _query(target).get("apply", "now")))
        case ("POST", ["profiles"]):
            return service.post_profile(_read(profile_request_from_json, body()))
        case ("POST", ["links"]):
            return service.post_link(_read(link_request_from_json, body()))
        case ("PUT", ["throughput"]):
            return service.put_throughput(_read(throughput_from_json, body()))
        case ("POST", ["commit"]):
            return service.post_commit(_read(commit_request_from_json, body()))
        case ("GET", ["rules"]):
            return service.get_rules()
        case ("GET", ["verification" | "check"]):
            return service.get_verification()
        case ("POST", ["verification"]):
            return service.get_verification(_read(verification_request_from_json, body()).counters)
        case ("GET", ["observed-paths"]):
            return service.get_observed_paths()
        case ("GET", ["taken"]):
            return TakenAnswer(service.get_observed_paths().paths)
    raise RequestError(404, f"no resource {method} {urlsplit(target).path}")


def _steps(target: str) -> list[str]:
    return [unquote(step) for step in urlsplit(target).path.split("/") if step]


def _query(target: str) -> dict[str, str]:
    return {key: values[-1] for key, values in parse_qs(urlsplit(target).query).items()}


def _read(decode: Callable[[object], T], given: object) -> T:
    try:
        return decode(given)
    except ValueError as error:
        raise RequestError(400, str(error)) from error


class RestServer:
    """Serves ``service`` on a listening socket; ``lock`` keeps requests apart."""

    def __init__(self, service: Service, lock: Any) -> None:
        self._service = service
        self._lock = lock
        self._warned: set[str] = set()

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

    def answer(self, method: str, target: str, body: Callable[[], object]) -> Response:
        """Return the response to a request; any failure is one line under ``error``."""
        headers = self._deprecation(target)
        try:
            with self._lock:
                return Response(200, encode(route(self._service, method, target, body)), headers)
        except RequestError as error:
            if error.status >= 500:  # the client gets the line; the log gets the traceback of the scheduler
                _log.error("%s %s", method, target, exc_info=error)
            return Response(error.status, encode(ErrorAnswer(str(error))), headers)
        except Exception as error:  # a request must never take the controller down
            _log.exception("%s %s", method, target)
            line = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return Response(500, encode(ErrorAnswer(line)), headers)

    def _deprecation(self, target: str) -> Mapping[str, str]:
        """The headers that mark a renamed route as deprecated; the first use is also logged."""
        old = "/" + "/".join(_steps(target))
        new = RENAMED_ROUTES.get(old)
        if new is None:
            return {}
        if old not in self._warned:
            self._warned.add(old)
            _log.warning("the route %s is deprecated: ask %s", old, new)
        return {"Deprecation": "true", "Link": f'<{new}>; rel="successor-version"'}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def __init__(self, connection: Any, rest: RestServer) -> None:
        self._rest = rest
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type]

    def _answer(self) -> None:
        raw = self._read()
        response = self._rest.answer(self.command, self.path, lambda: _parse(raw))
        text = json.dumps(response.body, sort_keys=True).encode()
        self.send_response(response.status)
        for header, value in response.headers.items():
            self.send_header(header, value)
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
        """Do not log requests."""


def _parse(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from error
