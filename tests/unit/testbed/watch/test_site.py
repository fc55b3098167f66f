"""Who gets what from the server of the watch page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.watch.site import Site, event

SITE = Site(41234, "a-token-of-this-run", "<!doctype html><title>watch</title>")
HOME = "/a-token-of-this-run"


def status(
    target: str, *, method: str = "GET", version: str = "HTTP/1.1", hosts: tuple[str, ...] = ("127.0.0.1:41234",)
) -> int:
    lines = [f"{method} {target} {version}", *(f"Host: {host}" for host in hosts), "Accept: */*", "", ""]
    return SITE.answer("\r\n".join(lines).encode()).status


@pytest.mark.parametrize("target", [HOME, f"{HOME}/"])
def test_who_has_the_token_gets_the_page(target: str) -> None:
    answer = SITE.answer(f"GET {target} HTTP/1.1\r\nHost: localhost:41234\r\n\r\n".encode())
    assert (answer.status, answer.body.decode()) == (200, SITE.page)
    head = answer.head.decode()
    assert "Content-Security-Policy: default-src 'none';" in head
    assert "Access-Control" not in head and head.endswith("\r\n\r\n")


def test_the_events_follow_in_a_stream() -> None:
    answer = SITE.answer(f"GET {HOME}/events HTTP/1.1\r\nHost: 127.0.0.1:41234\r\n\r\n".encode())
    assert answer.stream and answer.body == b"" and b"text/event-stream" in answer.head
    assert event("sample", '{"time_s":1}') == b'event: sample\ndata: {"time_s":1}\n\n'


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "",
        "/favicon.ico",
        "/events",
        f"{HOME}x",
        HOME[:-1],
        HOME.upper(),
        f"{HOME}/samples",
        f"{HOME}/events/more",
        HOME[1:],
        f"/..{HOME}",
        f"http://127.0.0.1:41234{HOME}",
        f"{HOME}?x",
    ],
)
def test_without_the_right_address_there_is_nothing(target: str) -> None:
    assert status(target) in (400, 404)


@given(st.text(st.characters(codec="ascii", exclude_characters=" \r\n"), max_size=40))
def test_no_other_token_opens_it(token: str) -> None:
    assert status(f"/{token}") == (200 if token.rstrip("/") == SITE.token else 404)


@pytest.mark.parametrize(
    "hosts",
    [(), ("127.0.0.1",), ("localhost:41235",), ("evil.example:41234",), ("127.0.0.1.evil.example:41234",),
     ("127.0.0.1:41234", "evil.example"), ("[::1]:41234",)],
)  # fmt: skip
def test_a_name_that_is_not_the_loopbacks_is_refused(hosts: tuple[str, ...]) -> None:
    assert status(HOME, hosts=hosts) == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD", "OPTIONS", "DELETE", "CONNECT", "get"])
def test_only_get_is_allowed(method: str) -> None:
    assert status(HOME, method=method) == 405


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"\xff\xfe / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(head: bytes) -> None:
    assert SITE.answer(head).status == 400


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer_and_none_of_them_the_page(head: bytes) -> None:
    assert SITE.answer(head).status != 200
