from __future__ import annotations

import pytest

from topologies.input.spelling import expectation, nearest

KNOWN = ("ecmp", "crux", "crux-pa", "nftables")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("cruks", "crux"), ("ECMP", "ecmp"), ("crux_pa", "crux-pa"), ("nft", "nftables"), ("hedera", ""), ("", "")],
)
def test_the_nearest_name_is_found_in_any_case_and_by_its_beginning(typed: str, meant: str) -> None:
    assert nearest(typed, KNOWN) == meant


def test_a_name_like_no_other_is_answered_with_all() -> None:
    assert expectation("cruks", KNOWN) == "did you mean 'crux'?"
    assert expectation("hedera", KNOWN) == "expected one of ecmp, crux, crux-pa, nftables"
    assert expectation("hedera", ()) == "expected one of nothing"
