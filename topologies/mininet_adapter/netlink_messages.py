"""The layout of netlink messages: what they begin with, and their attributes. Values only, no sockets."""

from __future__ import annotations

import struct
from typing import Final

HEADER: Final = struct.Struct("=IHHII")
"""Of every message (``nlmsghdr``): length, type, flags, sequence number, port."""
TC_MESSAGE: Final = struct.Struct("=BBHiIII")
"""Of messages about qdiscs, classes and filters (``tcmsg``): family, padding, interface, handle, parent, info."""
ATTRIBUTE: Final = struct.Struct("=HH")
"""Of every attribute (``nlattr``): length, kind."""
ERROR: Final = 2
"""Type of the message that refuses or confirms a request."""


def attribute(kind: int, value: bytes) -> bytes:
    """``value`` as an attribute, padded to whole words."""
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def packed(kind: int, flags: int, body: bytes, sequence: int = 1) -> bytes:
    """A whole message."""
    return HEADER.pack(HEADER.size + len(body), kind, flags, sequence, 0) + body
