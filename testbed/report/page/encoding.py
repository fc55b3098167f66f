"""Columns of numbers as base64 of little-endian typed arrays: a tenth of the size of JSON numbers. Pure.

``js/codec.js`` decodes them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LOAD_STEPS: Final = 200
"""Steps of a load of 1.0: half a percent each, up to 127 % in a byte."""


def loads_u8(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Shares of a link's rate (1.0: all of it) in steps of half a percent."""
    return np.clip(np.rint(shares * LOAD_STEPS), 0, 255).astype(np.uint8)


def u8(values: NDArray[np.uint8]) -> dict[str, str]:
    """Bytes as ``{"u8": base64}``."""
    return {"u8": base64.b64encode(values.tobytes()).decode("ascii")}


def f32(values: Sequence[float] | NDArray[np.float64]) -> dict[str, str]:
    """Numbers as ``{"f32": base64}``, to seven digits."""
    return {"f32": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii")}


def u32(values: Sequence[int] | NDArray[Any]) -> dict[str, str]:
    """Whole numbers from 0 as ``{"u32": base64}``."""
    return {"u32": base64.b64encode(np.asarray(values, dtype="<u4").tobytes()).decode("ascii")}
