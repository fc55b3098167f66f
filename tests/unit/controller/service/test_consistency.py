"""A fabric that a client or another package describes fits together, or is refused with the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from controller.service.consistency import check_fabric
from controller.service.json_codec import encode, fabric_from_json
from tests.unit.controller.conftest import small
from topologies.fabric import Fabric


def without_nearest_nic(fabric: Fabric) -> Fabric:
    nic = next(iter(fabric.nics.values()))
    return replace(fabric, nics={**fabric.nics, nic.name: replace(nic, gpus=())})


def with_a_gpu_of_another_host(fabric: Fabric) -> Fabric:
    first, *_, last = fabric.nics.values()
    return replace(fabric, nics={**fabric.nics, first.name: replace(first, gpus=(*first.gpus, *last.gpus))})


def without_pcie_links(fabric: Fabric) -> Fabric:
    links = {name: link for name, link in fabric.links.items() if link.kind != "pcie"}
    return replace(fabric, links=links)


def test_what_a_generator_builds_fits_together() -> None:
    fabric = small()
    check_fabric(fabric)
    assert fabric_from_json(encode(fabric)) == fabric


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without_nearest_nic, "has no NIC, expected one"),
        (with_a_gpu_of_another_host, "is of another host"),
        (without_pcie_links, "fabric.nics.h0n0: "),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: Callable[[Fabric], Fabric], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_fabric(change(small()))
