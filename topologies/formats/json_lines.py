"""Where in a JSON text a value is."""

from __future__ import annotations

import json
import re
from typing import Final

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder(parse_int=len)
"""Values do not matter here, and a number may have more digits than ``int`` takes."""

Location = tuple[str | int, ...]
"""Keys and list positions from the top of a document to a value."""


def line_of(text: str, location: Location) -> int:
    """Return the line, from 1, on which the value at ``location`` begins; that of what is around it if there is none.

    ``text`` is valid JSON.
    """
    place = _after_blanks(text, 0)
    for step in location:
        found = _child(text, place, step)
        if found is None:
            break
        place = found
    return text.count("\n", 0, place) + 1


def _child(text: str, place: int, step: str | int) -> int | None:
    """Where the value of a key or position begins, of the mapping or list at ``place``; a repeated key: the last."""
    if text[place] not in "{[":
        return None
    named, found = text[place] == "{", None
    position, place = 0, _after_blanks(text, place + 1)
    while text[place] not in "]}":
        key: object = position
        if named:
            key, place = _DECODER.raw_decode(text, place)
            place = _after_blanks(text, _after_blanks(text, place) + 1)
        if key == step and isinstance(key, type(step)):
            found = place
            if not named:
                return found
        _, place = _DECODER.raw_decode(text, place)
        place = _after_blanks(text, place)
        if text[place] == ",":
            place = _after_blanks(text, place + 1)
        position += 1
    return found


def _after_blanks(text: str, place: int) -> int:
    match = _BLANKS.match(text, place)
    return place if match is None else match.end()
