"""Servers that inference can lend: its load rises and falls with the day (Lyra section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import floor, pi, sin
from typing import ClassVar

from topologies.fabric import Fabric
from workloads.managers.capacities.gpu_types import ONE_TYPE, SPEEDS, GpuTypes, gpu_types
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import Capacity, CapacityChanged
from workloads.managers.options import hosts_named, naming, number, require_hosts, share, shown

MEAN_LOAD = 0.4
"""Published: inference clusters are used to about 40 % on average."""
SWING = 0.25
EVERY_S = 300.0
LEAST_EVERY_S = 1.0
UNCHANGED_DAYS = 2
"""After so many days without a change there will be none: every day is like the first."""
DAY_S = 86400.0


class InferenceLoad(Capacity):
    """The ``hosts`` serve inference; those that its load leaves free may be lent, looked at ``every_s`` seconds.

    ``gpu_type``: what GPUs they have, of :data:`.gpu_types.SPEEDS`; empty: those of all other hosts. ``speed``: of
    these GPUs relative to the others, if not that of the data sheets; ``mixed_efficiency``: see :class:`.GpuTypes`.
    The load is ``mean`` plus ``swing`` times a sine over the day, of all hosts; ``spare`` of them are always kept back.
    Hosts are absent until a policy borrows them (``lyra``). Every day is like the first.
    """

    name: ClassVar[str] = "inference"
    summary: ClassVar[str] = "hosts of inference that may be lent when its load is low"

    def __init__(
        self,
        *,
        hosts: Sequence[str] = (),
        mean: float = MEAN_LOAD,
        swing: float = SWING,
        every_s: float = EVERY_S,
        spare: float = 0.05,
        gpu_type: str = "",
        speed: float | None = None,
        mixed_efficiency: float | None = None,
    ) -> None:
        self._mean, self._swing = share(self.name, "mean", mean), share(self.name, "swing", swing)
        self._spare = share(self.name, "spare", spare)
        if not 0 <= self._mean - self._swing <= self._mean + self._swing <= 1:
            raise ValueError("options 'mean' and 'swing' of inference must give loads from 0 to 1")
        self._hosts = hosts_named(self.name, "hosts", hosts)
        if not isinstance(gpu_type, str):
            raise ValueError(f"option 'gpu_type' of inference must be a GPU type such as T4, not '{shown(gpu_type)}'")
        self.lends = bool(self._hosts)
        if not gpu_type and (speed is not None or mixed_efficiency is not None):
            raise ValueError("options 'speed' and 'mixed_efficiency' of inference need a 'gpu_type'")
        self._types = self._types_of(gpu_type, speed, mixed_efficiency) if gpu_type else ONE_TYPE
        self._every_s = number(self.name, "every_s", every_s, least=LEAST_EVERY_S)

    def _types_of(self, gpu_type: str, speed: object, mixed_efficiency: object) -> GpuTypes:
        speeds = SPEEDS if speed is None else {gpu_type: number(self.name, "speed", speed, above=0)}
        efficiency = None if mixed_efficiency is None else share(self.name, "mixed_efficiency", mixed_efficiency)
        if efficiency == 0:
            raise ValueError("option 'mixed_efficiency' of inference must be above 0, not '0'")
        with naming(self.name, "gpu_type"):
            return gpu_types({gpu_type: self._hosts}, speeds, efficiency)

    def gpu_types(self, fabric: Fabric) -> GpuTypes:
        """Those of its hosts, if they differ."""
        return self._types

    def check(self, structure: Structure) -> None:
        """Every host must be one of the fabric."""
        require_hosts(self.name, "hosts", self._hosts, structure)

    def lendable(self, time_s: float) -> int:
        """Hosts that may be on loan at ``time_s``."""
        return max(0, floor(len(self._hosts) * (1.0 - self.load_at(time_s) - self._spare) + 1e-9))

    def load_at(self, time_s: float) -> float:
        """Share of its hosts that inference uses at ``time_s``."""
        return self._mean + self._swing * sin(2 * pi * time_s / DAY_S)

    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """All hosts leave at first; then every change of the number that may be lent."""
        if not self._hosts:
            return
        before = self.lendable(0.0)
        yield CapacityChanged(0.0, leaving=self._hosts, lendable=before, reason="inference has its servers")
        unchanged_s = 0.0
        for turn in count(1):
            time_s = turn * self._every_s
            now = self.lendable(time_s)
            unchanged_s = 0.0 if now != before else unchanged_s + self._every_s
            if now != before:
                yield CapacityChanged(time_s, lendable=now, reason="the load of inference has changed")
            elif unchanged_s > UNCHANGED_DAYS * DAY_S:  # a swing too small for a host, or looked at once a day
                return
            before = now
