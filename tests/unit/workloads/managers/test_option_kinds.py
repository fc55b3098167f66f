"""Every option of every part takes the kinds of value that it is described with; others are refused in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import inf, nan
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.managers.queues.fair_share import Share, fair_shares
from workloads.managers.registry import _BUILT_IN, Point, create

Kind = Callable[[object], bool]
"""Whether a value of :data:`WRONG` is one that the option may have."""


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e18


def amount(value: Any) -> bool:
    return is_number(value) and (value == 0 or value >= 0.001)


def above_0(value: Any) -> bool:
    return amount(value) and value > 0


def factor(value: Any) -> bool:
    return is_number(value) and value >= 1


def share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def share_or_none(value: object) -> bool:
    return value is None or share(value)


def above_0_or_none(value: object) -> bool:
    return value is None or above_0(value)


def flag(value: object) -> bool:
    return isinstance(value, bool)


def whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def count(value: Any) -> bool:
    return whole(value) and value >= 1


def list_of(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def some_of(kind: Kind) -> Kind:
    return lambda value: bool(value) and list_of(kind)(value)


def text(value: object) -> bool:
    return isinstance(value, str)


def none_or(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def word(*words: str) -> Kind:
    return lambda value: isinstance(value, str) and value in words


def nothing(value: object) -> bool:
    return False


def empty_mapping(value: object) -> bool:
    """Of the mappings in :data:`WRONG` only the empty one is good: the others hold what no queue and no quota is."""
    return value is None or value == {}


def empty_or_quotas(value: object) -> bool:
    return empty_mapping(value) or value == {"a": {"b": 3}} or value == {1: {2: 3}} or value == {"a": {}}


def empty_shares(value: object) -> bool:
    return empty_mapping(value) or value == {"a": {}}


def mean(value: Any) -> bool:
    """What the usual swing of 0.25 leaves within 0 to 1."""
    return share(value) and 0.25 <= value <= 0.75


def swing(value: Any) -> bool:
    """What the usual mean of 0.4 leaves within 0 to 1."""
    return share(value) and value <= 0.4


GANDIVA_COSTS: Final[dict[str, Kind]] = {"suspend_s": amount, "migrate_s": amount}
KINDS: Final[dict[tuple[Point, str], dict[str, Kind]]] = {
    ("queue", "fair"): {"shares": empty_shares, "backfill": flag, "preemption": flag, "preempt_above": amount},
    ("queue", "capacity-scheduler"): {"queues": empty_mapping, "backfill": flag},
    ("policy", "srtf"): {"restart_s": amount},
    ("policy", "srsf"): {"restart_s": amount},
    ("policy", "philly"): {"wait_s": amount, "back_off_s": amount},
    ("policy", "tiresias"): {
        "limits": list_of(above_0),
        "promote": amount,
        "services": list_of(above_0),
        "slice_s": amount,
        "restart_s": amount,
        "order": word("running", "first-start", "entry"),
        "whole_seconds": flag,
        "round_s": amount,
    },
    ("policy", "time-slices"): {"slice_s": above_0, **GANDIVA_COSTS},
    ("policy", "gandiva"): {
        "slice_s": above_0,
        **GANDIVA_COSTS,
        "overhead": factor,
        "trial_s": amount,
        "look_s": above_0,
        "migrate": flag,
        "seed": whole,
    },
    ("policy", "packing"): {"overhead": factor, "migrate_s": amount, "trial_s": amount, "seed": whole},
    ("policy", "grow-shrink"): {"look_s": above_0, "restart_s": amount},
    ("policy", "optimus"): {
        "round_s": above_0,
        "restart_s": amount,
        "start_s": amount,
        "most": above_0,
        "speeds": word("known", "measured"),
        "lengths": word("known", "measured"),
    },
    ("policy", "lyra"): {
        "loan_hosts": none_or(list_of(text)),
        "restart_s": amount,
        "resize_s": amount,
        "elastic": flag,
        "on_loan_first": flag,
    },
    ("policy", "kubernetes"): {"create_s": amount, "release_s": above_0_or_none, "back_off_s": amount},
    ("policy", "muri-sharing"): {
        "order": word("remaining", "attained"),
        "most_jobs": count,
        "resources": some_of(word("network", "gpu")),
        "overheads": list_of(factor),
        "round_s": above_0,
        "restart_s": amount,
    },
    ("policy", "monkeytree"): {"fragments": count, "migrate_s": amount},
    ("placer", "elastic-groups"): {"on_loan_first": flag},
    ("placer", "hived"): {"virtual_clusters": empty_or_quotas, "gpu_types": empty_mapping},
    ("placer", "locality"): {"tries": count},
    ("placer", "relaxed"): {"probability": share, "unit": word("gpu", "nic"), "seed": whole},
    ("placer", "skew"): {"limit": share_or_none},
    ("placer", "monkeytree"): {"fragments": count},
    ("capacity", "planned"): {"changes": list_of(nothing)},
    ("capacity", "inference"): {
        "hosts": list_of(text),
        "mean": mean,
        "swing": swing,
        "every_s": factor,
        "spare": share,
        "gpu_type": lambda value: value in ("", "T4"),
        "speed": none_or(nothing),
        "mixed_efficiency": none_or(nothing),
    },
}
"""Of the parts that have options; an option that is not here fails a test."""

WRONG: Final[dict[str, object]] = {
    "text": "x",
    "no text": "",
    "a number as text": "1",
    "several lines": "a\nb",
    "no as text": "no",
    "true": True,
    "false": False,
    "none": None,
    "nan": nan,
    "inf": inf,
    "-inf": -inf,
    "0": 0,
    "1": 1,
    "-1": -1,
    "-0.5": -0.5,
    "0.3": 0.3,
    "1e-9": 1e-9,
    "1e300": 1e300,
    "-1e300": -1e300,
    "10**18": 10**18,
    "10**400": 10**400,
    "10**5000": 10**5000,
    "-10**5000": -(10**5000),
    "no list": [],
    "a list of text": ["x"],
    "a list of numbers": [3],
    "a list of nan": [nan],
    "a list of inf": [inf],
    "a list of huge": [10**5000],
    "a list of none": [None],
    "a list of lists": [["x"]],
    "a list of mappings": [{"a": 1}],
    "no mapping": {},
    "a mapping of numbers": {"a": 3},
    "a mapping of lists": {"a": [1]},
    "a mapping of none": {"a": None},
    "a mapping of nothing": {"a": {}},
    "a mapping of mappings": {"a": {"b": 3}},
    "a mapping by numbers": {1: {2: 3}},
    "a mapping of several keys": {"a": {1: 3, "b": nan, None: 2}},
}
OPTIONS: Final = [
    (point, name, option)
    for point in get_args(Point)
    for name, part in _BUILT_IN[point].items()
    for option in inspect.signature(part).parameters
]


def test_the_kind_of_every_option_is_known() -> None:
    assert {(point, name, option) for (point, name), kinds in KINDS.items() for option in kinds} == set(OPTIONS)


@pytest.mark.parametrize("said", WRONG)
@pytest.mark.parametrize(("point", "name", "option"), OPTIONS)
def test_an_option_is_taken_or_refused_in_one_line_that_names_it(
    point: Point, name: str, option: str, said: str
) -> None:
    value = WRONG[said]
    if KINDS[point, name][option](value):
        create(point, name, {option: value})
        return
    with pytest.raises(ValueError) as caught:
        create(point, name, {option: value})
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert f"'{option}'" in message
    assert f" of {name}" in message
    assert isinstance(caught.value.__cause__, ValueError | None), "the message is Python's own"
    assert len(message) < 400


@pytest.mark.parametrize(
    ("point", "name", "options", "message"),
    [
        (
            "queue",
            "fair",
            {"shares": {"a": {"weight": inf}}},
            "option 'shares' of fair: share of virtual cluster 'a': weight is inf, expected a number up to 1e+18",
        ),
        (
            "queue",
            "fair",
            {"shares": {"a": {"weight": nan}}},
            "option 'shares' of fair: share of virtual cluster 'a': weight is nan, expected a number up to 1e+18",
        ),
        (
            "queue",
            "capacity-scheduler",
            {"queues": {"a": {"capacity": inf}}},
            "option 'queues' of capacity-scheduler: option 'capacity' of queue 'a' must be a number of at most 1e+18, "
            "not 'inf'",
        ),
        ("queue", "fair", {"shares": 0}, "option 'shares' of fair: the queues are 0, expected queues by name"),
        (
            "placer",
            "hived",
            {"virtual_clusters": {"a": 3}},
            "option 'virtual_clusters' of hived: virtual cluster 'a' has '3', expected cells by level such",
        ),
        (
            "placer",
            "hived",
            {"virtual_clusters": [1]},
            "option 'virtual_clusters' of hived must be a mapping such as {vision: {host: 4}}, not '[1]'",
        ),
        (
            "capacity",
            "inference",
            {"hosts": ["h0"], "gpu_type": "T4", "speed": nan},
            "option 'speed' of inference must be a number above 0, not 'nan'",
        ),
        (
            "capacity",
            "inference",
            {"hosts": ["h0"], "gpu_type": "T4", "mixed_efficiency": nan},
            "option 'mixed_efficiency' of inference must be a number from 0 to 1, not 'nan'",
        ),
        ("policy", "lyra", {"elastic": "no"}, "option 'elastic' of lyra must be true or false, not 'no'"),
        ("policy", "gandiva", {"migrate": "no"}, "option 'migrate' of gandiva must be true or false, not 'no'"),
        ("policy", "tiresias", {"limits": [nan]}, "option 'limits' of tiresias must be a number above 0, not 'nan'"),
    ],
)
def test_a_wrong_value_is_shown_with_what_was_expected(
    point: Point, name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        create(point, name, options)
    assert str(caught.value).startswith(message)


def test_a_virtual_cluster_of_hived_may_be_called_by_a_number() -> None:
    assert create("placer", "hived", {"virtual_clusters": {1: {"host": 2}}}) is not None


@given(st.dictionaries(st.text(max_size=3), st.fixed_dictionaries({"weight": st.floats(), "least": st.floats()})))
def test_shares_that_are_taken_can_be_divided(shares: dict[str, dict[str, float]]) -> None:
    try:
        create("queue", "fair", {"shares": shares})
    except ValueError:
        return
    divided = fair_shares(64, {name: Share(**each) for name, each in shares.items()})
    assert all(gpus >= 0 for gpus in divided.values())
