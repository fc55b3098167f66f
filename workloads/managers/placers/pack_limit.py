"""Tiresias's PACKLIMIT, learned from profiles (Gu et al., NSDI 2019, section 3.3).

Tiresias learns by a linear classifier over past jobs which skew tells that a model is slowed down when it is spread. In
one dimension that is a threshold: the one with the fewest jobs on the wrong side. The profiles are those of the
models of the catalogue on the fabric: an iteration alone on the GPUs of one host, and on one GPU of each of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from topologies.fabric import Fabric
from workloads.analysis import isolated
from workloads.build import JobSpec, build_jobs
from workloads.models.catalogue import CATALOGUE

NOTICEABLE: Final = 1.1
"""A job that takes so many times as long when spread should be consolidated."""
_MOST_GPUS: Final = 8


@dataclass(frozen=True, slots=True)
class SpreadProfile:
    """How many times as long an iteration of a model of this ``skew`` takes when its GPUs are spread."""

    skew: float
    slow_down: float


def learn_limit(profiles: Iterable[SpreadProfile], noticeable: float = NOTICEABLE) -> float:
    """Return the limit above which models are to be consolidated: 0 to 1.

    The fewest profiles are on its wrong side; of several such limits the one farthest from any profile, and of equally
    far ones the highest. 1, which consolidates none, without a profile that is slowed down.
    """
    known = sorted(profiles, key=lambda profile: profile.skew)
    edges = [0.0, *(profile.skew for profile in known), 1.0]
    middles = [((low + high) / 2, high - low) for low, high in pairwise(edges) if high > low]
    if not known or all(profile.slow_down < noticeable for profile in known):
        return 1.0
    if all(profile.slow_down >= noticeable for profile in known):
        return 0.0
    return min(middles, key=lambda middle: (_wrong(known, middle[0], noticeable), -middle[1], -middle[0]))[0]


def _wrong(profiles: Sequence[SpreadProfile], limit: float, noticeable: float) -> int:
    return sum((profile.skew > limit) != (profile.slow_down >= noticeable) for profile in profiles)


def limit_of(fabric: Fabric) -> float:
    """Return the limit that the catalogue's models teach on ``fabric``."""
    return _limit_of(_Same(fabric))


def spread_profiles(fabric: Fabric) -> tuple[SpreadProfile, ...]:
    """Return a profile per model of the catalogue; none if no two hosts can be compared with one."""
    gpus = min(_MOST_GPUS, len(fabric.hosts), max(len(host.gpus) for host in fabric.hosts.values()))
    if gpus < 2:
        return ()
    roomy = next(host for host in fabric.hosts.values() if len(host.gpus) >= gpus)
    together = tuple(roomy.gpus[:gpus])
    apart = tuple(host.gpus[0] for host in list(fabric.hosts.values())[:gpus])
    profiles = []
    for name, model in CATALOGUE.items():
        try:
            near_s, far_s = (_iteration_s(name, placement, fabric) for placement in (together, apart))
        except ValueError:  # a layout that so few GPUs cannot have
            continue
        profiles.append(SpreadProfile(model.skew, far_s / near_s))
    return tuple(profiles)


def _iteration_s(model: str, placement: tuple[str, ...], fabric: Fabric) -> float:
    (job,) = build_jobs([JobSpec("job", model, placement=placement)], fabric)
    return isolated(job, fabric).iteration_s


@dataclass(frozen=True, slots=True)
class _Same:
    """A fabric that is hashed by identity."""

    fabric: Fabric

    def __hash__(self) -> int:
        return id(self.fabric)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.fabric is self.fabric


@lru_cache(maxsize=8)
def _limit_of(same: _Same) -> float:
    return learn_limit(spread_profiles(same.fabric))
