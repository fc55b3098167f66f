"""The bars of figures 19 to 22 of Crux that have no Crux in them: GPU utilisation under ECMP ("w/o Crux").

Read off the vector drawing (+- 0.001). They stand by themselves, because inputs are fitted to them
(:mod:`testbed.reproduce.crux.inputs.input_fit`), and what is fitted must not see the bars that are predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

WITHOUT_CRUX: Final[Mapping[str, float]] = MappingProxyType(
    {
        "crux-fig19-2": 0.759,
        "crux-fig19-3": 0.673,
        "crux-fig19-4": 0.597,
        "crux-fig20": 0.655,
        "crux-fig21-1": 0.721,
        "crux-fig21-2": 0.697,
        "crux-fig21-3": 0.645,
        "crux-fig22-8": 0.726,
        "crux-fig22-16": 0.646,
        "crux-fig22-24": 0.541,
    }
)
"""Scenario -> utilisation."""
