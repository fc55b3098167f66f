"""Tiresias's placement by skew."""

from __future__ import annotations

import pytest

from topologies.clos import clos
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Waiting
from workloads.managers.placers.skew import SKEW, SkewAware
from workloads.managers.registry import create

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)


def hosts_for(model: str) -> int:
    """Hosts of a job of 4 GPUs beside one that has 2 GPUs of the first."""
    placer: Placer = create("placer", "skew")  # type: ignore[assignment]
    state = empty_cluster(FABRIC).start(Waiting("there", 2), ("h0g0", "h0g1"))
    placement = placer.place(state, Waiting("new", 4, model=model), 4)
    assert placement is not None
    return len({FABRIC.host_of_gpu[gpu] for gpu in placement.gpus})


def test_skewed_models_are_kept_together_and_others_take_what_is_free() -> None:
    assert {model: hosts_for(model) for model in ("vgg16", "alexnet", "resnet50", "unheard-of")} == {
        "vgg16": 1,
        "alexnet": 1,
        "resnet50": 2,
        "unheard-of": 2,
    }


@pytest.mark.parametrize("limit", [0.14, 0.3, 0.6])
def test_any_limit_between_the_families_separates_them(limit: float) -> None:
    skewed = {model for model, skew in SKEW.items() if skew > limit}
    assert skewed == {"vgg19", "vgg16", "vgg11", "alexnet"}
    SkewAware(limit=limit)
