"""Replays repeated over seeds and numerical settings: what their spreads are, and what they let one say."""

from __future__ import annotations

import pytest

from testbed.fluid.numerical_settings import NUMERICAL_SETTINGS, STANDARD
from testbed.metrics.formats import with_spread
from testbed.reproduce.paper_experiment import Settings
from testbed.reproduce.replay_ensembles import Ensemble, points_numbers, variants_of


def ensemble(one: float, two: float, one_longer: float, two_longer: float) -> Ensemble:
    """Two seeds under two numerical settings."""
    return Ensemble({(1, "a"): one, (2, "a"): two, (1, "b"): one_longer, (2, "b"): two_longer})


def test_spreads_over_seeds_and_over_numerical_settings_are_told_apart() -> None:
    found = ensemble(0.50, 0.60, 0.51, 0.58)
    assert found.mean == pytest.approx(0.5475)
    assert found.seed_spread == pytest.approx(0.10)
    assert found.numerical_spread == pytest.approx(0.02)
    assert list(found.numbers("busy")) == ["busy", "busy_seed_spread", "busy_numerical_spread"]


def test_one_replay_has_no_spread() -> None:
    found = Ensemble({(1, "a"): 0.5})
    assert found.numbers("busy") == {"busy": 0.5}
    assert found.against(found).spread is None


def test_one_seed_proves_nothing_however_well_numerical_settings_agree() -> None:
    crux, ecmp = Ensemble({(1, "a"): 0.9, (1, "b"): 0.9}), Ensemble({(1, "a"): 0.5, (1, "b"): 0.5})
    found = crux.against(ecmp)
    assert (found.mean, found.spread, found.proven) == (pytest.approx(0.4), None, False)


def test_another_trace_moves_both_alike_and_does_not_hide_a_gain() -> None:
    crux, ecmp = ensemble(0.60, 0.80, 0.60, 0.80), ensemble(0.50, 0.69, 0.50, 0.69)
    assert crux.seed_spread == pytest.approx(0.2)
    assert crux.against(ecmp).mean == pytest.approx(0.105)
    assert crux.against(ecmp).proven


def test_a_difference_below_what_numerical_settings_alone_change_proves_nothing() -> None:
    moved, other = ensemble(0.60, 0.60, 0.65, 0.65), ensemble(0.58, 0.58, 0.63, 0.63)
    found = moved.against(other)
    assert found.mean == pytest.approx(0.02)
    assert found.spread == pytest.approx(0.05)
    assert not found.proven


def test_every_seed_is_replayed_with_all_numerical_settings_the_default_first() -> None:
    found = variants_of(Settings(cases=0, seed=3, seeds=2))
    assert found[:2] == ((3, "standard"), (4, "standard"))
    assert len(found) == 2 * len(NUMERICAL_SETTINGS) and len(NUMERICAL_SETTINGS) >= 2
    assert NUMERICAL_SETTINGS["standard"] == STANDARD
    assert len(set(NUMERICAL_SETTINGS.values())) == len(NUMERICAL_SETTINGS)


def test_a_table_puts_what_proves_nothing_in_parentheses() -> None:
    assert with_spread(5.23, 0.41) == "+5.2\N{PLUS-MINUS SIGN}0.4"
    assert with_spread(0.31, 0.41) == "(+0.3\N{PLUS-MINUS SIGN}0.4)"
    assert with_spread(-5.23, None) == "(-5.2)"
    assert with_spread(-0.02, 0.01) == "(0.0\N{PLUS-MINUS SIGN}0.0)"


def test_a_difference_of_shares_is_in_points() -> None:
    found = points_numbers("gain", ensemble(0.6, 0.6, 0.6, 0.6).against(ensemble(0.5, 0.5, 0.5, 0.5)))
    assert found == {"gain": pytest.approx(10.0), "gain_spread": pytest.approx(0.0, abs=1e-9)}
