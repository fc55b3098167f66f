"""Who may ask the controller what, over TCP: a page of a browser nothing, a local process to read, its user to change.

The Unix socket needs none of this: the mode of its file lets in its owner only. Pure.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from email.message import Message
from typing import Final

from controller.service.service import RequestError

LOCAL_NAMES: Final = ("127.0.0.1", "localhost")
"""What a client on this machine calls it. A page that lets its own name point here still sends that name."""
READING: Final = ("GET",)


def check_access(method: str, headers: Message, token: str | None) -> None:
    """Raise ``RequestError`` if a request over TCP is not to be served; ``token`` None allows no change at all."""
    host = _only(headers, "Host")
    if host.rpartition(":")[0] not in LOCAL_NAMES and host not in LOCAL_NAMES:
        raise RequestError(403, f"Host is {host!a}, expected {' or '.join(LOCAL_NAMES)}")
    if headers.get_all("Origin", [f"http://{host}"]) != [f"http://{host}"]:
        raise RequestError(403, "Origin is another site")
    if method not in READING:
        _check_token(headers, token)
        _check_type(headers)


def _only(headers: Message, name: str) -> str:
    found: Sequence[str] = headers.get_all(name, [])
    if len(found) != 1:
        raise RequestError(400, f"{len(found)} headers {name}, expected one")
    return found[0].strip()


def _check_token(headers: Message, token: str | None) -> None:
    if token is None:
        needed = "--token-file, or use its --rest-socket"
        raise RequestError(403, f"only GET is served here: to change the state, start the controller with {needed}")
    given = headers.get_all("Authorization", [])
    if len(given) != 1 or not hmac.compare_digest(given[0].strip().encode(), f"Bearer {token}".encode()):
        raise RequestError(401, "expected Authorization: Bearer and the token in the file of --token-file")


def _check_type(headers: Message) -> None:
    length = headers.get("Content-Length", "0").strip()
    if length != "0" and headers.get_content_type() != "application/json":
        raise RequestError(415, f"Content-Type is {headers.get_content_type()}, expected application/json")
