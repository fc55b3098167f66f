"""The placer of docs/reference/managers.md does what the page says, from a file outside the packages."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from topologies.clos import clos96
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.jobs import Waiting

DOCS = Path(__file__).parents[4] / "docs"
EXAMPLE = DOCS / "examples" / "emptiest_tor" / "emptiest_tor.py"


@pytest.fixture
def example() -> ModuleType:
    spec = spec_from_file_location("emptiest_tor", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_file_which_is_short() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert text in (DOCS / "reference" / "managers.md").read_text("utf-8")
    assert len(text.splitlines()) < 40


def test_it_places_where_most_is_free(example: ModuleType) -> None:
    state = empty_cluster(clos96()).start(Waiting("before", 1), ("h0g0",))
    placement = example.EmptiestTor().place(state, Waiting("a", 3), 3)
    assert placement.gpus == ("h2g0", "h2g1", "h2g2")
    assert example.EmptiestTor(whole_hosts=True).place(state, Waiting("a", 95), 95) is None


def test_it_says_what_is_wrong_with_its_option(example: ModuleType) -> None:
    with pytest.raises(ValueError, match="option 'whole_hosts' of emptiest-tor must be true or false, not '3'"):
        example.EmptiestTor(whole_hosts=3)
