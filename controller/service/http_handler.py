"""One connection of the REST interface: HTTP requests read within limits, answers and refusals as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from controller.service.json_codec import encode, parse_json
from controller.service.messages import ErrorAnswer
from controller.service.service import RequestError
from topologies.limits import one_line

LARGEST_BODY: Final = 256 * 2**20
"""Bytes; a fabric of thousands of hosts is some 10 MB."""
IDLE_S: Final = 60.0
"""A connection that says nothing for so long is closed."""
METHODS: Final = ("GET", "PUT", "POST", "DELETE")

_log = logging.getLogger("controller")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it leaves: HTTP status, JSON-ready body, and headers beside those of every answer."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(status: int, text: str) -> Response:
    """Return the response that refuses a request with one line; it may quote the request."""
    return Response(status, encode(ErrorAnswer(one_line(" ".join(text.split())))))


Answer = Callable[[str, str, Callable[[], object]], Response]
"""(method, path and query, what returns the parsed body or raises ``RequestError``) -> response."""


class RequestHandler(BaseHTTPRequestHandler):
    """Serves ``connection`` until it ends. ``check`` raises ``RequestError`` before a body is read."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = IDLE_S

    def __init__(self, connection: Any, check: Callable[[str, Any], None], answer: Answer) -> None:
        self._check = check
        self._answer_to = answer
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type]

    def parse_request(self) -> bool:
        """Read line and headers; a method that no resource has is refused here, others find their function."""
        if not super().parse_request():
            return False
        if self.command not in METHODS:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, f"method {self.command!a}, expected {', '.join(METHODS)}")
            return False
        return True

    def _serve(self) -> None:
        try:
            self._check(self.command, self.headers)
            raw = self._body()
        except RequestError as error:
            self.close_connection = True  # what is left of the request is not read
            self._send(refusal(error.status, str(error)))
            return
        self._send(self._answer_to(self.command, self.path, lambda: _parsed(raw)))

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _body(self) -> bytes:
        """The body, of the length that the request states; ``RequestError`` where it states none that can be."""
        if "Transfer-Encoding" in self.headers:
            raise RequestError(411, "Transfer-Encoding is not supported, expected Content-Length")
        lengths = self.headers.get_all("Content-Length", ["0"])
        text = lengths[0].strip()
        if len(lengths) != 1 or not (text.isascii() and text.isdigit()):
            raise RequestError(400, f"Content-Length is {', '.join(lengths)[:40]!a}, expected one whole number")
        if len(text) > len(str(LARGEST_BODY)) or int(text) > LARGEST_BODY:
            raise RequestError(413, f"the body is larger than {LARGEST_BODY} bytes")
        try:
            raw = self.rfile.read(int(text))
        except TimeoutError:
            raise RequestError(408, f"the body did not arrive within {IDLE_S:g} s") from None
        if len(raw) < int(text):
            raise RequestError(400, f"the body ended after {len(raw)} of {text} bytes")
        return raw

    def _send(self, response: Response) -> None:
        text = json.dumps(response.body, sort_keys=True).encode()
        if self.request_version == "HTTP/0.9":  # also what could not be read at all: it gets a status, too
            self.request_version, self.close_connection = "HTTP/1.0", True
        self.send_response(response.status)
        for header, value in response.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no HTTP request, in the form of every other refusal."""
        self.close_connection = True
        self._send(refusal(code, message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def _parsed(raw: bytes) -> object:
    try:
        return parse_json(raw)
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from error
