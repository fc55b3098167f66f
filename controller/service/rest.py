"""The northbound interface: REST with JSON over loopback TCP and, if asked for, a Unix socket.

A thread of the hub per connection (green under Ryu, real under os-ken), one request at a time in
the service. Over TCP a request is checked first (:mod:`controller.service.access`).
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from controller.dataplane.ryu_compat import hub
from controller.service.access import check_access
from controller.service.http_handler import RequestHandler, Response, refusal
from controller.service.json_codec import encode, fabric_from_json
from controller.service.messages import (
    RENAMED_ROUTES,
    Answer,
    TakenAnswer,
    apply_from_text,
    commit_request_from_json,
    job_request_from_json,
    link_request_from_json,
    profile_request_from_json,
    switches_from_json,
    throughput_from_json,
    throughput_request_from_json,
    verification_request_from_json,
)
from controller.service.service import RequestError, Service

G = TypeVar("G")
T = TypeVar("T")

_log = logging.getLogger("controller")

MOST_CONNECTIONS = 256
"""Of one listener at a time; whoever takes them all keeps nobody from the other listener."""
LAST_WORDS_S = 2.0
"""For a client to read its answer before the connection is closed."""


def route(service: Service, method: str, target: str, body: Callable[[], object]) -> Answer:
    """Return the answer of ``service`` to ``method`` on ``target`` (path and query). Raises ``RequestError``."""
    match (method, _steps(target)):
        case ("PUT", ["fabric"]):
            return service.put_fabric(_read(fabric_from_json, body()))
        case ("PUT", ["switches"]):
            return service.put_switches(_read(switches_from_json, body()))
        case ("GET", ["state"]):
            return service.get_state()
        case ("POST", ["jobs"]):
            return service.post_job(_read(job_request_from_json, body()))
        case ("PUT", ["jobs", name]):
            return service.put_job(name, _read(job_request_from_json, body()))
        case ("DELETE", ["jobs", name]):
            return service.delete_job(name, _read(apply_from_text, _query(target).get("apply", "now")))
        case ("POST", ["profiles"]):
            return service.post_profile(_read(profile_request_from_json, body()))
        case ("POST", ["links"]):
            return service.post_link(_read(link_request_from_json, body()))
        case ("PUT", ["throughput"]):
            return service.put_throughput(_read(throughput_from_json, body()))
        case ("POST", ["throughput"]):
            return service.post_throughput(_read(throughput_request_from_json, body()))
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
    raise RequestError(404, f"no resource {method} {_split(target).path}")


def _split(target: str) -> SplitResult:
    return _read(urlsplit, target)


def _steps(target: str) -> list[str]:
    return [unquote(step) for step in _split(target).path.split("/") if step]


def _query(target: str) -> dict[str, str]:
    return {key: values[-1] for key, values in _read(parse_qs, _split(target).query).items()}


def _read(decode: Callable[[G], T], given: G) -> T:
    try:
        return decode(given)
    except ValueError as error:
        raise RequestError(400, str(error)) from error


class RestServer:
    """Serves ``service``; ``lock`` keeps requests apart, ``token`` is what changes over TCP must show."""

    def __init__(self, service: Service, lock: Any, token: str | None = None) -> None:
        self._service = service
        self._lock = lock
        self._token = token
        self._warned: set[str] = set()

    def serve(self, listener: Any) -> None:
        """Answer on ``listener``, from :func:`listen_tcp` or :func:`listen_unix`, in threads of the hub."""
        hub.spawn(self._accept, listener)

    def _accept(self, listener: Any) -> None:
        open_now: set[int] = set()
        while True:
            try:
                connection, _ = listener.accept()
            except OSError as error:  # no descriptors left, or the client has gone
                if listener.fileno() < 0:
                    return
                _log.warning("REST: a connection was not accepted: %s", error)
                hub.sleep(0.1)
                continue
            if len(open_now) >= MOST_CONNECTIONS:
                connection.close()
                continue
            open_now.add(connection.fileno())
            hub.spawn(self._handle, connection, open_now)

    def _handle(self, connection: Any, open_now: set[int] | None = None) -> None:
        descriptor = connection.fileno()
        local = connection.family == socket.AF_UNIX
        if not local:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            RequestHandler(connection, _no_check if local else self._check, self.answer)
            _let_it_read(connection)
        except OSError:
            pass  # the client has gone
        except Exception:  # a request must never take the controller down, nor its thread in silence
            _log.exception("REST: a request was not answered")
        finally:
            if open_now is not None:
                open_now.discard(descriptor)
            connection.close()

    def _check(self, method: str, headers: Any) -> None:
        check_access(method, headers, self._token)

    def answer(self, method: str, target: str, body: Callable[[], object]) -> Response:
        """Return the response to a request; any failure is one line under ``error``."""
        headers: Mapping[str, str] = {}
        try:
            headers = self._deprecation(target)
            with self._lock:
                return Response(200, encode(route(self._service, method, target, body)), headers)
        except RequestError as error:
            if error.status >= 500:  # the client gets the line; the log gets the traceback of the scheduler
                _log.error("%s %r", method, target, exc_info=error)
            return replace(refusal(error.status, str(error)), headers=headers)
        except Exception as error:  # a request must never take the controller down
            _log.exception("%s %r", method, target)
            return replace(refusal(500, f"{type(error).__name__}: {error}"), headers=headers)

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


def listen_tcp(port: int) -> Any:
    """Return a listener on loopback at ``port`` (0: any free one); ``OSError`` with one line if that cannot be."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(50)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"REST port {port} cannot be used: {reason}") from error
    return listener


def listen_unix(path: str) -> Any:
    """Return a listener on the Unix socket ``path``, of its owner only; ``OSError`` with one line if that cannot be.

    A socket that nobody serves any more is replaced; nothing else is.
    """
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        _make_room(path)
        listener.bind(path)
        listener.listen(50)
    except OSError as error:
        listener.close()
        raise OSError(f"REST socket {path} cannot be used: {error.strerror or error}") from error
    finally:
        os.umask(before)
    return listener


def _make_room(path: str) -> None:
    """Remove a stale socket at ``path``; ``OSError`` for anything else that is there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError("it exists and is no socket, expected a path that is free")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        if probe.connect_ex(path) != errno.ECONNREFUSED:
            raise OSError("another process serves it, expected a path that is free")
    os.unlink(path)


def _no_check(method: str, headers: Any) -> None:
    """The mode of its file has decided who may use the Unix socket."""


def _let_it_read(connection: Any) -> None:
    """Wait until the client has the answer: closing with unread input would take it away from a client on TCP."""
    deadline = time.monotonic() + LAST_WORDS_S
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(LAST_WORDS_S)
        while connection.recv(65536) and time.monotonic() < deadline:
            pass
