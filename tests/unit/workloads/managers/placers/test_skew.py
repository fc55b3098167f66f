"""Tiresias's placement by skew, and the limit that it learns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.catalogue import MANAGERS
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Waiting
from workloads.managers.placers.pack_limit import SpreadProfile, learn_limit, limit_of, spread_profiles
from workloads.managers.placers.skew import PUBLISHED, SKEW
from workloads.managers.registry import create
from workloads.models.catalogue import CATALOGUE

PROFILES = st.lists(st.builds(SpreadProfile, st.floats(0.01, 0.99), st.floats(1.0, 3.0)), max_size=12)


def four_hosts(rate: float) -> Fabric:
    return clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=rate, fabric_rate=rate)


FABRIC = four_hosts(1e9)


def hosts_for(model: str, limit: float | None = 0.3) -> int:
    """Hosts of a job of 4 GPUs beside one that has 2 GPUs of the first."""
    placer: Placer = create("placer", "skew", {} if limit is None else {"limit": limit})  # type: ignore[assignment]
    state = empty_cluster(FABRIC).start(Waiting("there", 2), ("h0g0", "h0g1"))
    placement = placer.place(state, Waiting("new", 4, model=model), 4)
    assert placement is not None
    return len({FABRIC.host_of_gpu[gpu] for gpu in placement.gpus})


def test_skewed_models_are_kept_together_and_others_take_what_is_free() -> None:
    models = ("vgg16", "vgg", "alexnet", "multi-interests", "resnet50", "crux-bert", "unheard-of")
    assert [hosts_for(model) for model in models] == [1, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("limit", [0.14, 0.3, 0.6])
def test_any_limit_between_the_families_of_the_paper_separates_them(limit: float) -> None:
    assert {model for model, skew in PUBLISHED.items() if skew > limit} == {"vgg19", "vgg16", "vgg11", "alexnet"}


def test_every_model_of_the_catalogue_has_a_skew_and_those_of_the_paper_agree() -> None:
    assert all(0.0 < SKEW[model] < 1.0 for model in CATALOGUE)
    for ours, theirs in (("vgg", "vgg16"), ("vgg19", "vgg19")):
        assert CATALOGUE[ours].skew == pytest.approx(PUBLISHED[theirs], abs=0.005)
    for ours, theirs in (("resnet", "resnet50"), ("resnet152", "resnet152")):
        assert CATALOGUE[ours].skew < PUBLISHED[theirs] + 0.005  # the paper counts another last layer


def test_the_limit_is_learned_between_models_that_spreading_slows_down_and_others() -> None:
    profiles = [SpreadProfile(0.1, 1.0), SpreadProfile(0.2, 1.05), SpreadProfile(0.6, 1.5), SpreadProfile(0.7, 2.0)]
    assert learn_limit(profiles) == pytest.approx(0.4)
    assert learn_limit([*profiles, SpreadProfile(0.15, 3.0)]) == pytest.approx(0.4)  # one on the wrong side
    assert learn_limit(profiles[:2]) == 1.0
    assert learn_limit(profiles[2:]) == 0.0


@given(PROFILES)
def test_no_limit_has_fewer_profiles_on_its_wrong_side(profiles: list[SpreadProfile]) -> None:
    def wrong(limit: float) -> int:
        return sum((each.skew > limit) != (each.slow_down >= 1.1) for each in profiles)

    found = learn_limit(profiles)
    assert 0.0 <= found <= 1.0
    assert all(wrong(found) <= wrong(limit / 50) for limit in range(51))


def test_what_is_learned_depends_on_the_fabric() -> None:
    slow, fast = four_hosts(1e9), four_hosts(10e15)
    assert all(profile.slow_down > 1.1 for profile in spread_profiles(slow))
    assert limit_of(slow) == 0.0
    assert limit_of(fast) == 1.0
    assert hosts_for("resnet", limit=None) == 1  # as slow as that, every model belongs together


def test_tiresias_places_by_skew() -> None:
    assert MANAGERS["tiresias"].placer == "skew"
