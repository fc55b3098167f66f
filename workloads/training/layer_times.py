"""Layer times measured on a GPU: how long the layers of a model compute, from a file.

``benchmarks.gpu_layers`` writes such files. They hold forward and backward passes of one microbatch through one layer
on one rank of a tensor group, without anything that ranks exchange.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workloads.imported.errors import WorkloadFileError
from workloads.imported.text_file import read_json_object

EXPECTED: Final = "layer times as benchmarks.gpu_layers writes them"
LAYERS: Final = ("dense_layer", "expert_layer", "output_layer")
"""What is measured: a layer without experts, a layer with, and the output layer."""
_MOST_S: Final = 3600.0
_MOST_COUNT: Final = 10**9


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of a forward and of a backward pass."""

    forward_s: float
    backward_s: float


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Times of the ``layers`` of ``model`` (:data:`LAYERS` -> seconds), and what they were measured with."""

    file: str
    gpu: str
    model: str
    precision: str
    sequence: int
    microbatch: int
    tensor: int
    expert: int
    layers: Mapping[str, PassTimes]

    def layer(self, *, experts: bool) -> PassTimes:
        """Return the times of a layer, with or without experts."""
        return self.layers["expert_layer" if experts else "dense_layer"]

    @property
    def output(self) -> PassTimes:
        """The times of the output layer."""
        return self.layers["output_layer"]

    def check(self, asked: Mapping[str, object], needed: tuple[str, ...]) -> None:
        """Raise ``ValueError`` unless measured as ``asked`` (name -> value), with all layers that are ``needed``."""
        for name, value in asked.items():
            if getattr(self, name) != value:
                what = f"{self.file} has layer times for {name} {getattr(self, name)}"
                raise ValueError(f"{what}, expected those for {name} {value}")
        for name in needed:
            if name not in self.layers:
                raise ValueError(f"{self.file} has no {name}, expected its forward_s and backward_s")


def read_layer_times(path: Path) -> LayerTimes:
    """Return the layer times in a JSON file; :class:`WorkloadFileError` names the file and the key that is wrong."""
    given = read_json_object(path, EXPECTED)
    return LayerTimes(
        file=path.name,
        gpu=_text(path, given, "gpu"),
        model=_text(path, given, "model"),
        precision=_text(path, given, "precision"),
        sequence=_count(path, given, "sequence"),
        microbatch=_count(path, given, "microbatch"),
        tensor=_count(path, given, "tensor"),
        expert=_count(path, given, "expert"),
        layers={name: _passes(path, name, given[name]) for name in LAYERS if name in given},
    )


def _text(path: Path, given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise _wrong(path, key, value, "text")
    return value


def _count(path: Path, given: Mapping[str, Any], key: str) -> int:
    value = given.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_COUNT:
        raise _wrong(path, key, value, "a whole number of at least 1")
    return value


def _passes(path: Path, name: str, given: object) -> PassTimes:
    if not isinstance(given, dict):
        raise _wrong(path, name, given, "an object with forward_s and backward_s")
    return PassTimes(*(_seconds(path, name, given, key) for key in ("forward_s", "backward_s")))


def _seconds(path: Path, name: str, given: Mapping[str, Any], key: str) -> float:
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(path, f"{name}.{key}", value, "seconds")
    if not 0 <= value <= _MOST_S:
        raise _wrong(path, f"{name}.{key}", value, f"0 to {_MOST_S:.0f} seconds")
    return float(value)


def _wrong(path: Path, key: str, value: object, expected: str) -> WorkloadFileError:
    what = f"no {key}" if value is None else f"{key} is {json.dumps(value)[:60]}"
    return WorkloadFileError(str(path), None, what, expected)
