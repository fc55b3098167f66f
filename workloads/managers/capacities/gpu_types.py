"""GPU types and their relative speeds: servers on loan from inference have slower GPUs (Lyra, EuroSys 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from topologies.fabric import Fabric
from workloads.job import Job

PEAK_FLOPS: Final[Mapping[str, float]] = MappingProxyType({"V100": 15.7e12, "A100": 19.5e12, "T4": 8.1e12})
"""GPU type -> FP32 FLOP/s, of NVIDIA's data sheets."""
SPEEDS: Final[Mapping[str, float]] = MappingProxyType(
    {name: flops / PEAK_FLOPS["V100"] for name, flops in PEAK_FLOPS.items()}
)
"""GPU type -> speed relative to a V100, by which durations of a trace count."""
USUAL_TYPE: Final = "V100"
"""The type of all hosts of speed 1 that no mapping names."""


@dataclass(frozen=True)
class GpuTypes:
    """How fast the GPUs of each host are: ``speed_of_host`` relative to those of all hosts that it does not name.

    A synchronous job is as fast as its slowest GPU. With ``mixed_efficiency`` a job on GPUs of several speeds divides
    its batch by speed, and reaches this share of their sum (Lyra's heterogeneous training); None: it cannot.
    ``type_of_host``: names of types; a host without one is a V100, or, at another speed, of a type named by its speed.
    """

    speed_of_host: Mapping[str, float] = field(default_factory=dict)
    mixed_efficiency: float | None = None
    type_of_host: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for host, speed in self.speed_of_host.items():
            if not (math.isfinite(speed) and speed > 0):
                raise ValueError(f"the speed of host '{host}' must be above 0, not {speed:g}")
        if self.mixed_efficiency is not None and not 0 < self.mixed_efficiency <= 1:
            raise ValueError(f"mixed_efficiency must be above 0 and at most 1, not {self.mixed_efficiency:g}")

    def type_of(self, host: str) -> str:
        """Return the type of a host's GPUs."""
        speed = self.speed_of_host.get(host, 1.0)
        return self.type_of_host.get(host) or (USUAL_TYPE if speed == 1.0 else f"speed {speed:g}")

    def speed(self, hosts: Iterable[str]) -> float:
        """Return the speed of a job with a GPU on each of ``hosts`` (repeated for more), in GPUs of speed 1."""
        speeds = [self.speed_of_host.get(host, 1.0) for host in hosts]
        alone = len(speeds) * min(speeds)
        if self.mixed_efficiency is None or min(speeds) == max(speeds):
            return alone
        return max(alone, self.mixed_efficiency * sum(speeds))


ONE_TYPE: Final = GpuTypes()


def slowed(job: Job, fabric: Fabric, types: GpuTypes) -> Job:
    """Return ``job`` as it computes on its GPUs: what takes a second at speed 1 takes longer on slower ones.

    Its bytes stay as they are. On GPUs of several speeds each computes as long as the others.
    """
    if not types.speed_of_host:
        return job
    per_gpu = types.speed(fabric.host_of_gpu[gpu] for gpu in job.gpus) / len(job.gpus)
    if per_gpu == 1.0:
        return job
    return replace(job, phases=tuple(replace(each, compute_s=each.compute_s / per_gpu) for each in job.phases))


def gpu_types(
    hosts: Mapping[str, Sequence[str]], speeds: Mapping[str, float] = SPEEDS, mixed_efficiency: float | None = None
) -> GpuTypes:
    """Return the types of ``hosts`` (GPU type -> hosts that have it); ``ValueError`` for a type without a speed."""
    unknown = next((name for name in hosts if name not in speeds), None)
    if unknown is not None:
        raise ValueError(f"unknown GPU type '{unknown}', expected one of {', '.join(sorted(speeds))}")
    names = {host: name for name, of_type in hosts.items() for host in of_type}
    return GpuTypes({host: speeds[name] for host, name in names.items()}, mixed_efficiency, names)
