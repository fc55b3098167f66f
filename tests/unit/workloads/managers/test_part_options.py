"""Options of a manager's parts that no part can have are refused in one line, and none lets a run go on for ever."""

from __future__ import annotations

from typing import Any

import pytest

from topologies.clos import clos
from workloads.managers.capacities.inference import InferenceLoad
from workloads.managers.ledger import Ledger
from workloads.managers.registry import Point, create, manager
from workloads.plugins import Plugins

FABRIC = clos(hosts=4, gpus_per_host=2, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)


@pytest.mark.parametrize(
    ("point", "name", "options"),
    [
        ("policy", "grow-shrink", {"look_s": 1e-9}),
        ("policy", "optimus", {"round_s": 1e-300}),
        ("policy", "optimus", {"round_s": 1e300}),
        ("policy", "time-slices", {"slice_s": float("inf")}),
        ("capacity", "inference", {"hosts": ["h0"], "every_s": 1e-9}),
        ("capacity", "inference", {"hosts": ["h0"], "every_s": "often"}),
        ("capacity", "inference", {"hosts": "h0"}),
        ("capacity", "inference", {"hosts": [["h0"]]}),
        ("policy", "lyra", {"loan_hosts": 3}),
        ("queue", "fair", {"shares": 3}),
        ("queue", "fair", {"shares": {"a": 3}}),
        ("placer", "hived", {"virtual_clusters": [1]}),
        ("policy", "tiresias", {"limits": {"a": 1}}),
    ],
)
def test_an_option_that_cannot_be_is_one_line(point: Point, name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as error:
        create(point, name, options)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("load", [{"swing": 0.0}, {"swing": 1e-9}, {"every_s": 86400.0}])
def test_inference_whose_load_never_changes_has_no_more_changes(load: dict[str, float]) -> None:
    changes = list(InferenceLoad(hosts=("h2", "h3"), **load).changes(FABRIC))
    assert [(change.time_s, change.leaving) for change in changes] == [(0.0, ("h2", "h3"))]


def test_a_part_that_fails_in_any_way_is_named_in_one_line() -> None:
    def part(**options: object) -> object:
        raise KeyError("weight\nof it")

    with pytest.raises(ValueError, match=r"queue odd: no 'weight"):
        Plugins("queue", "testbed.none", {"odd": part}, ("name",)).create("odd")


@pytest.mark.parametrize(
    "parts",
    [
        {"capacity": "inference", "options": {"capacity": {"hosts": ["h0", "h9"]}}},
        {"policy": "lyra", "options": {"policy": {"loan_hosts": ["h9"]}}},
    ],
)
def test_a_host_that_the_fabric_lacks_is_named_before_the_run(parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="names 'h9', expected hosts of the fabric such as h0"):
        Ledger(manager(**parts), FABRIC)
