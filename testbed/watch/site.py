"""What the watch page's server answers to a request: who may ask, for what, and with which headers. Pure.

The server listens on the loopback, which any user of the machine, and any web page in a browser on it, can reach. So an
address holds a random token; and the ``Host`` must be the loopback's, since a name of somebody else that leads here
(DNS rebinding) would make the answers readable to that somebody's pages. Standard library only: it must start fast.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 8192
"""The longest request, with its headers."""
_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_NOTHING: Final = "default-src 'none'"
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may do; it allows itself fewer scripts, only those that are in it."""
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    421: "Misdirected Request",
}


@dataclass(frozen=True)
class Answer:
    """``head`` and ``body`` as they are sent; ``stream``: the events of the run follow until it ends."""

    status: int
    head: bytes
    body: bytes = b""
    stream: bool = False


@dataclass(frozen=True)
class Site:
    """The page at ``/TOKEN`` and its events at ``/TOKEN/events``, on ``port``."""

    port: int
    token: str
    page: str

    def answer(self, head: bytes) -> Answer:
        """Answer the request that begins with ``head``, its headers included."""
        try:
            request, *lines = head.decode("ascii").split("\r\n")
            method, target, version = request.split(" ")
            headers = [line.split(":", 1) for line in lines if line]
            hosts = [value.strip().lower() for name, value in headers if name.lower() == "host"]
        except ValueError:
            return refusal(400)
        if not version.startswith("HTTP/1."):
            return refusal(400)
        if len(hosts) != 1 or hosts[0] not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            return refusal(421)
        if method != "GET":
            return refusal(405, ("Allow", "GET"))
        return self._found(target)

    def _found(self, target: str) -> Answer:
        _, token, *rest = (*target.split("/"), "")
        # In a time that does not tell how much of it was right.
        if not (target.startswith("/") and hmac.compare_digest(token.encode(), self.token.encode())):
            return refusal(404)
        match [part for part in rest if part]:
            case []:
                body = self.page.encode()
                kind = ("Content-Type", "text/html; charset=utf-8")
                return Answer(200, _head(200, kind, _length(body), policy=PAGE_POLICY), body)
            case ["events"]:
                return Answer(200, _head(200, ("Content-Type", "text/event-stream")), stream=True)
            case _:
                return refusal(404)


def refusal(status: int, *headers: tuple[str, str]) -> Answer:
    """An answer that says no, and nothing of what would be there."""
    body = f"{_REASONS[status]}\n".encode()
    return Answer(status, _head(status, ("Content-Type", "text/plain"), _length(body), *headers), body)


def event(name: str, data: str) -> bytes:
    """One server-sent event; ``data`` is a line."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def _length(body: bytes) -> tuple[str, str]:
    return "Content-Length", str(len(body))


def _head(status: int, *headers: tuple[str, str], policy: str = _NOTHING) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}"]
    lines += [f"{name}: {value}" for name, value in (*_HEADERS, ("Content-Security-Policy", policy), *headers)]
    return "\r\n".join([*lines, "", ""]).encode()
