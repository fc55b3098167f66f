"""Mutations of texts and of plain data, drawn from a seeded generator: the same seed gives the same case."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from datetime import date
from random import Random
from typing import Any, Final

HUGE: Final = (10**6, 10**9, 2**31, 2**63, 10**18, 10**30, 10**4000, -1, -(10**9), 65535, 65536, 65537)
ODD_FLOATS: Final = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e-300, 5e-324, 0.1, -0.0, 1e18)
ODD_TEXTS: Final = (
    "",
    " ",
    "x",
    "null",
    "-1",
    "0",
    "1e29 s",
    "1e300",
    "1e300Gbps",
    "1e-300s",
    "9" * 5000,
    "9" * 5000 + "s",
    "0x" + "f" * 3000,
    "1:" * 3000 + "1",
    "nan",
    "inf",
    "-5s",
    "0s",
    "0GB",
    "b\u00e9",
    "a" * 1100,
    "a\nb",
    "a\r\nb: c",
    "a\u2028b",
    "a\x1b[31mb",
    "a\tb",
    "../../x",
    "/../../x",
    "/etc/passwd",
    "[/red]",
    "[bold]x",
    "$x_{",
    "<script>",
    "a:b",
    "a.b",
    "a-b-",
    "%s%n",
    "{0}",
    "\ud800",
    "\u202e",
    "h0:0-999999999",
    "h0g0",
    "crux",
    "2001-01-01",
)
TAGS: Final = (
    "!!timestamp",
    "!!bool",
    "!!int",
    "!!float",
    "!!null",
    "!!binary",
    "!!set",
    "!!omap",
    "!!pairs",
    "!!str",
    "!!map",
    "!!seq",
    "!!merge",
    "!!value",
    "!!python/object/apply:os.system",
    "!x",
    "!",
    "&a",
    "*a",
    "&a *a",
    "|",
    ">",
    "?",
    "%",
    "@",
    "{",
    "[",
    '"',
    "'",
    "<<: *a",
    "- ",
)
_CHARACTERS: Final = "\x00\t\x1b\x7f\x85\u00a0\u2028\ufeff\ud800\U0001f600:,[]{}#&*!|>'\"%@`-?=\n\r 019eE.+_<"


def odd_value(random: Random) -> Any:
    """A value of any type that a document can hold, likely one that does not fit."""
    return random.choice(_VALUES)(random)


_VALUES: Final[Sequence[Callable[[Random], Any]]] = (
    lambda random: None,
    lambda random: random.choice((True, False)),
    lambda random: random.choice((0, 1, 2, 7)),
    lambda random: random.choice(HUGE),
    lambda random: random.choice(HUGE),
    lambda random: random.choice(ODD_FLOATS),
    lambda random: random.choice(ODD_TEXTS),
    lambda random: random.choice(ODD_TEXTS),
    lambda random: [],
    lambda random: {},
    lambda random: [random.choice(ODD_TEXTS), random.choice(HUGE)],
    lambda random: {random.choice(ODD_TEXTS): random.choice(ODD_TEXTS)},
    lambda random: nested(random.choice((3, 50, 400)), random.random() < 0.5),
    lambda random: [random.choice((1, "a", {}, []))] * random.choice((100, 3000)),
    lambda random: date(2001, 1, 1),
)


def nested(depth: int, mappings: bool) -> Any:
    """``depth`` lists or mappings inside each other."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if mappings else [value]
    return value


def structural(data: Any, random: Random, times: int = 1) -> Any:
    """``data`` with ``times`` of its parts replaced, removed, renamed, repeated, wrapped or exchanged."""
    mutant = copy.deepcopy(data)
    for _ in range(times):
        places = _places(mutant)
        if not places:
            return odd_value(random)
        random.choice(_STRUCTURAL)(*random.choice(places), places, random)
    return mutant


Place = tuple[Any, Any]
"""A list or mapping, and the position or key of a part of it."""


def _places(data: Any) -> list[Place]:
    found: list[Place] = []
    waiting = [data]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found


def _replace(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    holder[key] = odd_value(random)


def _remove(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    del holder[key]


def _rename(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    if isinstance(holder, dict):
        text = str(key)
        holder[random.choice((text[:-1], text + "s", text.upper(), random.choice(ODD_TEXTS)))] = holder.pop(key)


def _add(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    if isinstance(holder, dict):
        holder[random.choice(("extra", "name", "kind", "seed", "options", *ODD_TEXTS))] = odd_value(random)
    else:
        holder.append(odd_value(random))


def _repeat(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    if isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key]) for _ in range(random.choice((1, 2, 100)))]


def _wrap(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    holder[key] = random.choice(([holder[key]], {"name": holder[key]}, [[holder[key]]]))


def _exchange(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    other, its = random.choice(places)
    holder[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(holder[key])


def _scale(holder: Any, key: Any, places: list[Place], random: Random) -> None:
    """A number somewhat or very much larger or smaller, or another sign."""
    value = holder[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = value * random.choice((-1, 2, 10, 1000, 10**9, 0.5, 1e-9))
    else:
        holder[key] = odd_value(random)


_STRUCTURAL: Final = (_replace, _replace, _replace, _remove, _rename, _add, _repeat, _wrap, _exchange, _scale, _scale)


def textual(text: str, random: Random, times: int = 1) -> bytes:
    """The bytes of ``text`` with ``times`` of its bytes, words or lines changed."""
    data = text
    for _ in range(times):
        data = random.choice(_TEXTUAL)(data, random)
    raw = data.encode("utf-8", "surrogatepass")
    if random.random() < 0.15:
        raw = _bytes_flipped(raw, random)
    return raw


def _bytes_flipped(raw: bytes, random: Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(random.choice((1, 3, 20))):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _at(text: str, random: Random) -> int:
    return random.randrange(len(text) + 1)


def _insert_character(text: str, random: Random) -> str:
    at = _at(text, random)
    return text[:at] + random.choice(_CHARACTERS) * random.choice((1, 1, 1, 50)) + text[at:]


def _drop_characters(text: str, random: Random) -> str:
    at = _at(text, random)
    return text[:at] + text[at + random.choice((1, 1, 2, 10)) :]


def _lines(change: Callable[[list[str], Random], None]) -> Callable[[str, Random], str]:
    def changed(text: str, random: Random) -> str:
        lines = text.split("\n")
        change(lines, random)
        return "\n".join(lines)

    return changed


def _remove_line(lines: list[str], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def _double_line(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines[at:at] = [lines[at]] * random.choice((1, 1, 2, 500))


def _swap_lines(lines: list[str], random: Random) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def _indent_line(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines[at] = random.choice((" ", "  ", "\t", "        ")) + lines[at]


def _cut_off(text: str, random: Random) -> str:
    return text[: _at(text, random)]


def _number(text: str, random: Random) -> str:
    """A run of digits becomes another number."""
    digits = [at for at, character in enumerate(text) if character.isdigit()]
    if not digits:
        return _insert_character(text, random)
    at = random.choice(digits)
    end = at
    while end < len(text) and text[end].isdigit():
        end += 1
    new = random.choice(
        ("0", "-1", "1e9", "1e300", "9" * 5000, "10" * 9, "0.5", "1e-300", ".nan", ".inf", "1_0", "0b1")
    )
    return text[:at] + new + text[end:]


def _word(text: str, random: Random) -> str:
    """Something that means something to a parser, before a word or instead of it."""
    starts = [at + 1 for at, character in enumerate(text) if character in " ,:[{\n"] or [0]
    at = random.choice(starts)
    end = at
    while end < len(text) and text[end] not in " ,:]}\n":
        end += 1
    new = random.choice((*TAGS, *ODD_TEXTS))
    return f"{text[:at]}{new}{random.choice((' ', ''))}{text[random.choice((at, end)) :]}"


_TEXTUAL: Final = (
    _insert_character,
    _drop_characters,
    _lines(_remove_line),
    _lines(_double_line),
    _lines(_swap_lines),
    _lines(_indent_line),
    _cut_off,
    _number,
    _number,
    _word,
    _word,
    _word,
)
