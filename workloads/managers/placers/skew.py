"""Tiresias's placement: only jobs whose model is skewed need their GPUs together (Gu et al., NSDI 2019, section 3.3).

Skew is the share of the largest tensor in the model. It is known for every model of the catalogue, and for those of
Tiresias's paper by the names it gives them. Unless it is fixed, the limit is learned from profiles
(:mod:`workloads.managers.placers.pack_limit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.options import share
from workloads.managers.placers.consolidated import Consolidated
from workloads.managers.placers.first_free import FirstFree
from workloads.managers.placers.pack_limit import limit_of
from workloads.models.catalogue import CATALOGUE

PUBLISHED: Final[Mapping[str, float]] = MappingProxyType(
    {
        "vgg19": 0.717,
        "vgg16": 0.744,
        "vgg11": 0.774,
        "alexnet": 0.611,
        "resnet152": 0.060,
        "resnet101": 0.075,
        "resnet50": 0.112,
        "inception4": 0.044,
        "inception3": 0.138,
    }
)
"""Model of the paper -> largest tensor over all tensors, in bytes; any limit from 0.14 to 0.61 separates two
families."""
SKEW: Final[Mapping[str, float]] = MappingProxyType(
    {**PUBLISHED, **{name: model.skew for name, model in CATALOGUE.items()}}
)
"""Model -> skew; the catalogue's own where both know a name."""


class SkewAware(Placer):
    """Consolidates jobs of models whose skew is above ``limit``; others, and unknown ones, take the first free GPUs.

    Without ``limit`` it is learned from how much the catalogue's models are slowed down on the fabric when spread.
    """

    name: ClassVar[str] = "skew"
    summary: ClassVar[str] = "consolidates jobs whose model has one large tensor, scatters the others"
    uses: Mapping[str, str] = {"skew": "consolidating those of skewed models"}

    def __init__(self, *, limit: float | None = None) -> None:
        self._limit = None if limit is None else share(self.name, "limit", limit)
        self._together, self._anywhere = Consolidated(), FirstFree()

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """On the fewest hosts, or on the first free GPUs."""
        limit = limit_of(state.fabric) if self._limit is None else self._limit
        skewed = SKEW.get(job.model, 0.0) > limit
        return (self._together if skewed else self._anywhere).place(state, job, gpus)
