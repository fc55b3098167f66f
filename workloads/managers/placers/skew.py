"""Tiresias's placement: only jobs whose model is skewed need their GPUs together (Gu et al., NSDI 2019, section 3.2).

Skew is the share of the largest tensor in the model. Values are those of public models; any limit between 0.14 and 0.61
separates the two families.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.consolidated import Consolidated
from workloads.managers.placers.first_free import FirstFree

SKEW: Final[Mapping[str, float]] = MappingProxyType(
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
"""Model -> largest tensor over all tensors, in bytes."""
PACK_LIMIT: Final = 0.3


class SkewAware(Placer):
    """Consolidates jobs of skewed models; others, and unknown ones, take the first free GPUs."""

    name: ClassVar[str] = "skew"
    summary: ClassVar[str] = "consolidates jobs whose model has one large tensor, scatters the others"

    def __init__(self, *, limit: float = PACK_LIMIT) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit <= 1:
            raise ValueError(f"option 'limit' of skew must be a number from 0 to 1, not '{limit}'")
        self._limit = float(limit)
        self._together, self._anywhere = Consolidated(), FirstFree()

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """On the fewest hosts, or on the first free GPUs."""
        skewed = SKEW.get(job.model, 0.0) > self._limit
        return (self._together if skewed else self._anywhere).place(state, job, gpus)
