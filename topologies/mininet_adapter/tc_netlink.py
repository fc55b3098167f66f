"""The lines of ``tc -batch`` that shape links, said to the kernel over netlink: many in one datagram.

``tc`` takes 0.2 ms for a line, and a fabric of hundreds of switches has 80,000. Lines differ in little but the
interface, so each is encoded once, and sent with the number of the interface in its place. Where a line is of another
kind, all are left to ``tc``.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from topologies.mininet_adapter.netlink_messages import ERROR, HEADER, TC_MESSAGE, attribute, packed
from topologies.mininet_adapter.system import LIMIT_S, CommandError, run_batch

_REFUSAL: Final = struct.Struct("=iIHHII")
"""Of an answer (``nlmsgerr``): the error, 0 for none, and the header of the request."""
_FLAGS_AT, _NUMBER_AT, _INTERFACE_AT = 6, 8, HEADER.size + 4
_NEW: Final = {"qdisc": 36, "class": 40, "filter": 44}
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE = 1, 4, 0x200, 0x400
_FLAGS: Final = {"add": _REQUEST | _CREATE | _EXCLUSIVE, "change": _REQUEST}
_ROOT: Final = 0xFFFFFFFF
_KIND, _OPTIONS = 1, 2
_HTB_PARAMETERS, _HTB_INIT = 1, 2
_HTB_VERSION, _RATE_TO_QUANTUM = 3, 10
_U32_CLASS, _U32_SELECTOR = 1, 5
_IPV4: Final = 0x0800
_ETHERNET: Final = 1
"""With a link layer the kernel computes what a packet takes, and needs no tables for it."""
_DATAGRAM: Final = 1 << 17
_TICKS_PER_US: Final = 1000 / 64
"""Of packet schedulers, on every kernel since 2.6.31 (``/proc/net/psched``)."""


class UnknownLineError(ValueError):
    """A line that is not one of those that shape links."""


def run_tc(lines: Sequence[str]) -> None:
    """Carry out ``lines`` in the current network namespace; ``CommandError`` names the first that is refused."""
    try:
        messages = [_message(line) for line in lines]
    except UnknownLineError:
        run_batch("tc", lines)
        return
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * _DATAGRAM)
        kernel.settimeout(LIMIT_S)
        last = -1
        for datagram, count in _datagrams(messages):
            last += count
            try:
                kernel.send(datagram)
                _confirm(kernel, last, lines)
            except OSError as error:
                raise CommandError(f"tc {lines[last]}, or one of {count - 1} lines before it: {error}") from error


def _datagrams(messages: Iterable[bytearray]) -> Iterator[tuple[bytes, int]]:
    """Messages together, numbered; the last of a datagram asks for an answer, errors are told in any case."""
    waiting, size, number = list[bytearray](), 0, 0
    for number, each in enumerate(messages):
        struct.pack_into("=I", each, _NUMBER_AT, number)
        waiting.append(each)
        size += len(each)
        if size > _DATAGRAM - 4096:
            yield _joined(waiting), len(waiting)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting), len(waiting)


def _joined(messages: Sequence[bytearray]) -> bytes:
    (flags,) = struct.unpack_from("=H", messages[-1], _FLAGS_AT)
    struct.pack_into("=H", messages[-1], _FLAGS_AT, flags | _ACKNOWLEDGE)
    return b"".join(messages)


def _confirm(kernel: socket.socket, last: int, lines: Sequence[str]) -> None:
    """Wait for the answer to message ``last``; ``CommandError`` if any before it, or itself, was refused."""
    refused: tuple[int, int] | None = None
    while True:
        answer = kernel.recv(1 << 16)
        place = 0
        while place + HEADER.size <= len(answer):
            length, kind, _flags, _sequence, _port = HEADER.unpack_from(answer, place)
            if kind == ERROR:
                error, _, _, _, number, _ = _REFUSAL.unpack_from(answer, place + HEADER.size)
                if error and refused is None:
                    refused = number, -error
                if number == last:
                    if refused is not None:
                        raise CommandError(f"tc {lines[refused[0]]}: {os.strerror(refused[1])}")
                    return
            place += (length + 3) & ~3


def _message(line: str) -> bytearray:
    """The message for ``line``, without its number."""
    what, verb, dev, interface, rest = [*line.split(" ", 4), ""][:5]
    if dev != "dev" or what not in _NEW or verb not in _FLAGS:
        raise UnknownLineError(line)
    found = bytearray(_template(what, verb, rest))
    try:
        struct.pack_into("=i", found, _INTERFACE_AT, socket.if_nametoindex(interface))
    except OSError:
        raise CommandError(f"tc {line}: there is no interface {interface}") from None
    return found


@lru_cache(maxsize=1 << 14)
def _template(what: str, verb: str, rest: str) -> bytes:
    words = rest.split()
    try:
        parent, handle, info, body = _READERS[what](words)
    except (IndexError, ValueError, KeyError) as error:
        raise UnknownLineError(f"{what} {verb} {rest}") from error
    content = TC_MESSAGE.pack(socket.AF_UNSPEC, 0, 0, 0, handle, parent, info) + body
    return packed(_NEW[what], _FLAGS[verb], content)


def _kind(name: str, options: bytes) -> bytes:
    return attribute(_KIND, name.encode() + b"\0") + attribute(_OPTIONS, options)


def _handle(text: str) -> int:
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _expect(words: Sequence[str], *wanted: str) -> None:
    """``ValueError`` unless every second of ``words`` is as wanted."""
    if tuple(words[::2]) != wanted:
        raise ValueError(" ".join(words))


def _qdisc(words: Sequence[str]) -> tuple[int, int, int, bytes]:
    if words[0] == "root":
        if words[1] != "handle" or words[3:5] != ["htb", "default"]:
            raise ValueError(words)
        options = struct.pack("=5I", _HTB_VERSION, _RATE_TO_QUANTUM, int(words[5], 16), 0, 0)
        return _ROOT, _handle(words[2]), 0, _kind("htb", attribute(_HTB_INIT, options))
    _expect(words[:4], "parent", "handle")
    if words[4] != "bfifo":
        raise ValueError(words)
    _expect(words[5:], "limit")
    return _handle(words[1]), _handle(words[3]), 0, _kind("bfifo", struct.pack("=I", int(words[6])))


def _class(words: Sequence[str]) -> tuple[int, int, int, bytes]:
    _expect(words[:4], "parent", "classid")
    if words[4] != "htb" or len(words) % 2 == 0:
        raise ValueError(words)
    given = dict(zip(words[5::2], words[6::2], strict=True))
    rate, most = (_bytes_per_s(given.pop(name)) for name in ("rate", "ceil"))
    burst, cburst = (int(given.pop(name)) for name in ("burst", "cburst"))
    quantum, prio = int(given.pop("quantum", "0")), int(given.pop("prio", "0"))
    if given:
        raise ValueError(words)
    options = _rate_spec(rate) + _rate_spec(most)
    options += struct.pack("=5I", _ticks(burst, rate), _ticks(cburst, most), quantum, 0, prio)
    return _handle(words[1]), _handle(words[3]), 0, _kind("htb", attribute(_HTB_PARAMETERS, options))


def _rate_spec(rate: int) -> bytes:
    return struct.pack("=BBHhHI", 0, _ETHERNET, 0, -1, 0, rate)


def _bytes_per_s(text: str) -> int:
    return int(text.removesuffix("bit")) // 8


def _ticks(size: int, rate: int) -> int:
    """How long ``size`` bytes take at ``rate`` bytes per second, in whole microseconds as ``tc`` counts them."""
    return min(0xFFFFFFFF, int(int(1e6 * size / rate) * _TICKS_PER_US))


def _filter(words: Sequence[str]) -> tuple[int, int, int, bytes]:
    _expect(words[:6], "parent", "protocol", "prio")
    if words[3] != "ip" or words[6] != "u32":
        raise ValueError(words)
    parent, info, keys = _handle(words[1]), int(words[5]) << 16 | socket.htons(_IPV4), []
    words = words[7:]
    while words and words[0] == "match":
        taken, key = _key(words[1:])
        keys.append(key)
        words = words[1 + taken :]
    _expect(words, "flowid")
    selector = struct.pack("=BBBxHHhhI", 1, 0, len(keys), 0, 0, 0, 0, 0) + b"".join(keys)
    options = attribute(_U32_CLASS, struct.pack("=I", _handle(words[1]))) + attribute(_U32_SELECTOR, selector)
    return parent, 0, info, _kind("u32", options)


def _key(words: Sequence[str]) -> tuple[int, bytes]:
    """How many ``words`` say what has to match, and that as the kernel compares it: a word of 32 bits at an offset."""
    if words[:2] == ["ip", "dsfield"]:
        return 4, _packed(int(words[3], 16) << 16, int(words[2], 16) << 16, 0)
    size = {"u8": 1, "u16": 2}[words[0]]
    _expect(words[3:5], "at")
    offset, value, mask = int(words[4]), int(words[1], 0), int(words[2], 0)
    shift = 8 * (4 - size - offset % 4)
    return 5, _packed(mask << shift, value << shift, offset - offset % 4)


def _packed(mask: int, value: int, offset: int) -> bytes:
    return struct.pack("!II", mask, value & mask) + struct.pack("=ii", offset, 0)


_READERS: Final = {"qdisc": _qdisc, "class": _class, "filter": _filter}
