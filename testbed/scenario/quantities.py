"""Field types of the scenario file: quantities with units, counts and shares, each with what it expects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from topologies import limits, units

EXPECTED: Final = "expected"
"""Type of the pydantic errors whose message is what was expected, and nothing else."""


def expected(what: str) -> PydanticCustomError:
    """Return the error to raise for a value that is not ``what``."""
    return PydanticCustomError(EXPECTED, "{what}", {"what": what})


def _reader(kind: str, parse: Callable[[str], float], base: str, what: str) -> Callable[[object], float]:
    least, most = limits.QUANTITIES[kind]
    noun = what.partition(" with")[0]

    def read(value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
            return 0.0
        try:
            quantity = parse(value) if isinstance(value, str) else math.nan
        except ValueError:
            quantity = math.nan
        if math.isnan(quantity):
            raise expected(what)
        if quantity and not least <= quantity <= most:
            raise expected(f"{noun} from {least:g}{base} to {most:g}{base}")
        return quantity

    return read


def _writer(show: Callable[[float], str], parse: Callable[[str], float], base: str) -> Callable[[float], str]:
    def write(value: float) -> str:
        """Short where that is exact, so that a resolved scenario reads back as the same values."""
        short = show(value) if value else f"0{base}"
        return short if parse(short) == value else f"{value!r}{base}"

    return write


def _text(example: str) -> object:
    return Annotated[str, Field(pattern=r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*[A-Za-z/]+\s*$", examples=[example])]


def _positive(value: float) -> float:
    if value <= 0:
        raise expected("more than 0")
    return value


def _within(value: float) -> float:
    if not 1 / limits.FACTOR <= value <= limits.FACTOR:
        raise expected(f"a number from {1 / limits.FACTOR:g} to {limits.FACTOR:g}")
    return value


Rate = Annotated[
    float,
    BeforeValidator(
        _reader("rate", units.parse_rate, "bps", "a rate with its unit, such as 200Gbps"), _text("200Gbps")
    ),
    PlainSerializer(_writer(units.format_rate, units.parse_rate, "bps"), return_type=str),
]
"""bit/s, written ``200Gbps``."""

Time = Annotated[
    float,
    BeforeValidator(_reader("time", units.parse_time, "s", "a time with its unit, such as 1.2s"), _text("1.2s")),
    PlainSerializer(_writer(units.format_time, units.parse_time, "s"), return_type=str),
]
"""Seconds, written ``1.2s``."""

Size = Annotated[
    float,
    BeforeValidator(_reader("size", units.parse_size, "B", "a size with its unit, such as 350MB"), _text("350MB")),
    PlainSerializer(_writer(units.format_size, units.parse_size, "B"), return_type=str),
]
"""Bytes, written ``350MB``."""

Work = Annotated[
    float,
    BeforeValidator(
        _reader("work", units.parse_work, "FLOP", "an amount of work with its unit, such as 3.5TFLOP"),
        _text("3.5TFLOP"),
    ),
    PlainSerializer(_writer(units.format_work, units.parse_work, "FLOP"), return_type=str),
]
"""FLOP, written ``3.5TFLOP``."""

PositiveTime = Annotated[Time, AfterValidator(_positive)]
PositiveWork = Annotated[Work, AfterValidator(_positive)]
Count = Annotated[int, Field(strict=True, ge=1, le=limits.COUNT)]
Number = Annotated[int, Field(strict=True, ge=0, le=limits.COUNT)]
Seed = Annotated[int, Field(strict=True, ge=0, le=limits.WHOLE_NUMBER)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Factor = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), AfterValidator(_within)]
Text = Annotated[str, Field(max_length=limits.TEXT)]
Flag = Annotated[bool, Field(strict=True)]
