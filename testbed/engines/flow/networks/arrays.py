"""What networks of packets do with the arrays that they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def longer(array: NDArray[Number], by: int) -> NDArray[Number]:
    """``array`` with ``by`` more entries along its first axis, all zero."""
    return np.concatenate((array, np.zeros((by, *array.shape[1:]), array.dtype)))


def wider(array: NDArray[Number], width: int) -> NDArray[Number]:
    """``array`` with ``width`` columns, zero where there were none."""
    more = np.zeros((len(array), width - array.shape[1]), array.dtype)
    return np.ascontiguousarray(np.concatenate((array, more), axis=1))


def taken(names: Sequence[str], sent: Any) -> dict[tuple[str, int], float]:
    """(link, level) -> bytes of the column ``sent`` [links, levels], where there are any; they are 0 afterwards."""
    links, levels = np.nonzero(np.asarray(sent))
    found = {}
    for link, level in zip(links.tolist(), levels.tolist(), strict=True):
        found[names[link], level] = float(sent[link, level])
        sent[link, level] = 0.0
    return found
