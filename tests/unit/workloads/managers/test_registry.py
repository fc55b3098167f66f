"""Parts of a manager by name: built in, from other packages, and what is wrong with a name or an option."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from topologies.clos import clos96
from workloads import plugins
from workloads.managers import registry
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import Tick
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.registry import Point


class LastFree:
    """A placer of somebody else's package."""

    name = "last-free"
    summary = "the last free GPUs"

    def __init__(self, *, seed: int = 0, skip: int = 0) -> None:
        self.seed, self.skip = seed, skip

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        free = [gpu for host in state.fabric.hosts for gpu in state.free_on(host)]
        return Placement(tuple(free[len(free) - gpus - self.skip :][:gpus]))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = {"last-free": "LastFree", "broken": "nothing", "number": "NUMBER", "empty": "object"}
    points = [EntryPoint(name, f"package:{target}", "testbed.placers") for name, target in targets.items()]
    loaded: dict[str, Callable[[], object] | int] = {"LastFree": LastFree, "NUMBER": 7, "object": object}

    def load(point: EntryPoint) -> object:
        return loaded[point.value.partition(":")[2]]

    monkeypatch.setattr(EntryPoint, "load", load)
    monkeypatch.setattr(plugins, "entry_points", lambda **chosen: EntryPoints(points).select(**chosen))


def test_the_placers_of_the_trace_experiments_are_there() -> None:
    assert {"none", "consolidated", "hived", "muri"} <= set(registry.names("placer"))


@pytest.mark.parametrize("point", list(registry.GROUPS))
def test_every_part_can_be_made_has_its_name_and_says_what_it_does(point: Point) -> None:
    for name in registry.names(point):
        assert registry.create(point, name).name == name  # type: ignore[attr-defined]
        assert registry.summary(point, name)


@pytest.mark.usefixtures("installed")
def test_a_placer_of_another_package_places() -> None:
    assert "last-free" in registry.names("placer")
    manager = registry.manager("last-free", options={"placer": {"skip": 1}}, seed=5)
    (start,) = manager.decide(empty_cluster(clos96()), [Waiting("a", 2)], Tick())
    assert start.gpus == ("h11g5", "h11g6")  # type: ignore[union-attr]
    assert manager.placer.seed == 5  # type: ignore[attr-defined]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("borg", {}, "unknown placer 'borg', expected one of affinity, broken, consolidated, elastic-groups, empty, "),
        ("hived", {"quota": 1}, "unknown option 'quota' of placer hived, expected: gpu_types, virtual_clusters"),
        ("hived", {"virtual_clusters": 3}, "option 'virtual_clusters' of hived must be a mapping such as "),
        ("none", {"seed": 1}, "unknown option 'seed' of placer none, expected: none"),
        ("broken", {}, "placer 'broken' cannot be loaded: KeyError: 'nothing'"),
        ("number", {}, "placer 'number' is not a class or function but int"),
        ("empty", {}, r"placer 'empty' has no name, expected name, summary and place\(\)"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        registry.manager(name, options={"placer": options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "option"),
    [
        ("time-slices", "suspend_s"),
        ("srtf", "restart_s"),
        ("lyra", "restart_s"),
        ("lyra", "resize_s"),
        ("time-slices", "migrate_s"),
        ("gandiva", "migrate_s"),
        ("gandiva", "trial_s"),
        ("optimus", "restart_s"),
        ("packing", "migrate_s"),
        ("packing", "trial_s"),
        ("grow-shrink", "restart_s"),
        ("muri-sharing", "restart_s"),
        ("philly", "wait_s"),
    ],
)
@pytest.mark.parametrize("value", [-1, "soon", True])
def test_a_time_that_is_none_is_named_with_its_policy_and_option(policy: str, option: str, value: object) -> None:
    message = f"option '{option}' of {policy} must be a number of at least 0, not '{value}'"
    with pytest.raises(ValueError, match=message):
        registry.create("policy", policy, {option: value})
