"""Chakra execution traces as bytes: messages of protocol buffers, each preceded by its length.

The schema is ``et_def.proto`` of mlcommons/chakra: first ``GlobalMetadata``, then a ``Node`` after the other. The wire
format is three rules (variable-length integers, fixed words, lengths), so no compiled schema is needed to read it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

AttributeValue = float | int | bool | str | tuple[float | int | bool | str, ...]
"""Of an attribute: a number, a text, or several of them."""

MOST_BITS: Final = 70
"""Of a variable-length integer: ten bytes."""

METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
"""``NodeType``."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE, _FLOAT, _BOOL, _STRING, _STRINGS = 3, 5, 27, 29, 30
_SIGNED: Final = frozenset({7, 9})
_UNSIGNED: Final = frozenset({11, 13})
_ZIGZAG: Final = frozenset({15, 17})
_INT64: Final = 9
_INTEGER_LISTS: Final = frozenset({8, 10, 12, 14, 16, 18, 28})


class WireError(ValueError):
    """The bytes are no such messages; says what is wrong."""


@dataclass(frozen=True, slots=True)
class ChakraNode:
    """A node of the graph of one rank."""

    id: int
    name: str
    kind: int
    """``NodeType``: :data:`COMPUTE`, :data:`COLLECTIVE` ..."""
    after: tuple[int, ...] = ()
    """Ids of the nodes that it waits for, control and data dependencies together, each once."""
    seconds: float = 0.0
    """Its recorded duration."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=lambda: MappingProxyType({}))
    """Name -> value."""
    start_s: float = 0.0
    """When it began."""


def read_messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a file; raises :class:`WireError` if it ends within one."""
    place = 0
    while place < len(data):
        size, place = _varint(data, place)
        if place + size > len(data):
            raise WireError(f"a message of {size} bytes ends behind the file")
        yield data[place : place + size]
        place += size


def read_version(message: bytes) -> str:
    """Return the version in the ``GlobalMetadata``, empty if it has none."""
    return next((_text(value) for number, value in _fields(message) if number == 1), "")


def read_node(message: bytes) -> ChakraNode:
    """Return a ``Node``; raises :class:`WireError` if the bytes are none."""
    name, wholes = "", {1: 0, 3: 0, 6: 0, 7: 0}
    after: dict[int, None] = {}
    attributes: dict[str, AttributeValue] = {}
    for key, value in _fields(message):
        if key in wholes:
            wholes[key] = _whole(value)
        elif key == 2:
            name = _text(value)
        elif key in (4, 5):
            after.update(dict.fromkeys(_packed(value)))
        elif key == 10:
            attributes.update(_attribute(value))
    return ChakraNode(
        wholes[1], name, wholes[3], tuple(after), wholes[7] * 1e-6, MappingProxyType(attributes), wholes[6] * 1e-6
    )


def write_messages(messages: Iterable[bytes]) -> bytes:
    """Return the file that has these messages."""
    return b"".join(part for message in messages for part in (_written(len(message)), message))


def write_version(version: str) -> bytes:
    """Return the ``GlobalMetadata``."""
    return _field(1, version)


def write_node(node: ChakraNode) -> bytes:
    """Return the ``Node``; dependencies are written as data dependencies, whole numbers as ``int64``."""
    parts = [_field(1, node.id), _field(2, node.name), _field(3, node.kind)]
    if node.after:
        parts.append(_field(5, b"".join(_written(each) for each in node.after)))
    parts += [_field(6, round(node.start_s * 1e6)), _field(7, round(node.seconds * 1e6))]
    parts += [_field(10, _written_attribute(name, value)) for name, value in node.attributes.items()]
    return b"".join(parts)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data):
            raise WireError("it ends within a number")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if byte < 0x80:
            return value, place
        if shift >= MOST_BITS:
            raise WireError("a number is longer than ten bytes")


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field; fixed words as their bytes."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        wire = tag & 7
        if wire == _VARINT:
            value, place = _varint(message, place)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, place = _varint(message, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise WireError(f"a field has the unknown wire type {wire}")
        if place + size > len(message):
            raise WireError("a field ends behind its message")
        yield tag >> 3, message[place : place + size]
        place += size


def _whole(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise WireError("a field that is a whole number has another type")
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a field that is a text or a message is a whole number")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("a text is not UTF-8") from None


def _packed(value: int | bytes) -> Iterator[int]:
    """Repeated whole numbers, packed or one by one."""
    if isinstance(value, int):
        yield value
        return
    place = 0
    while place < len(value):
        found, place = _varint(value, place)
        yield found


def _attribute(value: int | bytes) -> dict[str, AttributeValue]:
    """The name and the value of an ``AttributeProto``; none for types that are not read."""
    name: str = ""
    found: AttributeValue | None = None
    for key, content in _fields(_bytes(value)):
        if key == 1:
            name = _text(content)
        elif (read := _attribute_value(key, content)) is not None:
            found = read
    return {} if found is None else {name: found}


def _attribute_value(key: int, content: int | bytes) -> AttributeValue | None:
    if key == _BOOL:
        return bool(_whole(content))
    if key in _SIGNED:
        whole = _whole(content) & (2**64 - 1)
        return whole - 2**64 if whole >= 2**63 else whole
    if key in _UNSIGNED:
        return _whole(content)
    if key in _ZIGZAG:
        whole = _whole(content)
        return (whole >> 1) ^ -(whole & 1)
    if key == _STRING:
        return _text(content)
    if key in (_DOUBLE, _FLOAT):
        return _real(_bytes(content))
    if key in _INTEGER_LISTS:
        return tuple(each for number, inner in _fields(_bytes(content)) if number == 1 for each in _packed(inner))
    if key == _STRINGS:
        return tuple(_text(inner) for number, inner in _fields(_bytes(content)) if number == 1)
    return None


def _real(content: bytes) -> float:
    if len(content) not in (4, 8):
        raise WireError("a field that is a number has another type")
    return float(struct.unpack("<d" if len(content) == 8 else "<f", content)[0])


def _written(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _written(number << 3 | _VARINT) + _written(value)
    content = value.encode("utf-8") if isinstance(value, str) else value
    return _written(number << 3 | _BYTES) + _written(len(content)) + content


def _written_attribute(name: str, value: AttributeValue) -> bytes:
    if isinstance(value, bool):
        return _field(1, name) + _field(_BOOL, int(value))
    if isinstance(value, int):
        return _field(1, name) + _field(_INT64, value)
    if isinstance(value, str):
        return _field(1, name) + _field(_STRING, value)
    raise WireError(f"attribute {name} is {value!r}: only numbers, texts and truth values are written")
