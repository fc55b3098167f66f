"""The verdict: each kind of evidence alone changes it, and says in one line why."""

from __future__ import annotations

import pytest

from testbed.fidelity import (
    MAX_LINK_RATE_ERROR,
    MAX_STANDSTILL_S,
    MAX_TIMER_LATENESS_S,
    MIN_BUSY_S,
    MIN_IDLE_CPU,
    Evidence,
    Second,
    disturbed_spans,
    judge,
)

QUIET = [Second(float(end), 1.0, 0.5, 0.0, 0.0) for end in range(1, 21)]


def second(end: float, idle: float, stolen: float = 0.0, foreign: float = 0.0) -> Second:
    return Second(end, 1.0, idle, stolen, foreign)


def test_a_quiet_run_with_exact_links_is_ok() -> None:
    found = judge(Evidence(seconds=QUIET, timer_lateness_s=[0.002], link_rates={"a": (5.0, 1.001, 0.0)}))
    assert (found.verdict, found.reasons, found.machine_caused) == ("ok", (), False)
    assert (found.min_idle_cpu, found.max_timer_lateness_s) == (0.5, 0.002)
    assert found.link_rate_error == pytest.approx(0.001)


def test_no_evidence_at_all_is_no_reason_for_doubt() -> None:
    assert judge(Evidence()).verdict == "ok"


@pytest.mark.parametrize(("count", "verdict"), [(1, "degraded"), (4, "degraded"), (5, "invalid"), (20, "invalid")])
def test_seconds_that_the_run_itself_starved_degrade_and_many_invalidate(count: int, verdict: str) -> None:
    starved = [second(float(end), MIN_IDLE_CPU - 0.01) for end in range(1, count + 1)]
    found = judge(Evidence(seconds=[*starved, *QUIET[count:]]))
    assert found.verdict == verdict
    assert f"in {count} of 20 s" in found.reasons[0]
    assert not found.machine_caused


def test_seconds_that_neighbours_took_are_left_out_while_enough_others_remain() -> None:
    seconds = [*QUIET, second(21.0, 0.2, stolen=0.3), second(22.0, 0.2, foreign=0.3)]
    assert judge(Evidence(seconds=seconds)).verdict == "ok"
    assert disturbed_spans(seconds) == [(20.0, 21.0), (21.0, 22.0)]


def test_too_few_undisturbed_iterations_degrade_by_the_machines_doing() -> None:
    found = judge(Evidence(seconds=[*QUIET, second(21.0, 0.1, stolen=0.4)], enough_undisturbed=False))
    assert (found.verdict, found.machine_caused) == ("degraded", True)


def test_a_fault_of_the_run_beside_a_neighbours_is_not_the_machines_doing() -> None:
    disturbed = [*QUIET, second(21.0, 0.1, stolen=0.4)]
    found = judge(Evidence(seconds=disturbed, enough_undisturbed=False, retransmits=3))
    assert (found.verdict, found.machine_caused) == ("degraded", False)


LATE = MAX_TIMER_LATENESS_S + 0.005


def test_a_passing_hitch_only_disturbs_the_iterations_it_touches() -> None:
    assert judge(Evidence(timer_lateness_s=[MAX_TIMER_LATENESS_S] * 9)).verdict == "ok"
    found = judge(Evidence(timer_lateness_s=[0.0, LATE]))
    assert (found.verdict, found.max_timer_lateness_s) == ("ok", LATE)


def test_many_late_timers_degrade() -> None:
    found = judge(Evidence(timer_lateness_s=[0.0] * 97 + [LATE] * 3))
    assert found.verdict == "degraded"
    assert "in 3 of 100 iterations (by 25 ms at most, 20 ms allowed)" in found.reasons[0]


def test_a_standstill_degrades_even_once() -> None:
    assert judge(Evidence(timer_lateness_s=[0.0] * 999 + [MAX_STANDSTILL_S + 0.001])).verdict == "degraded"


def test_a_late_timer_degrades_where_its_iteration_was_not_replaced() -> None:
    found = judge(Evidence(timer_lateness_s=[0.0] * 99 + [LATE], enough_undisturbed=False))
    assert any("ended late in 1 of 100" in reason for reason in found.reasons)


@pytest.mark.parametrize("reached", [1 + MAX_LINK_RATE_ERROR + 0.001, 1 - MAX_LINK_RATE_ERROR - 0.001])
def test_a_link_off_its_rate_degrades_and_is_named(reached: float) -> None:
    rates = {"tor0->agg1": (MIN_BUSY_S, reached, 0.0), "tor0->agg0": (9.0, 1.0, 0.0)}
    found = judge(Evidence(link_rates=rates))
    assert found.verdict == "degraded"
    assert "tor0->agg1" in found.reasons[0]


def test_a_link_that_was_hardly_busy_or_within_the_grain_is_not_judged_by_that() -> None:
    rates = {"a": (MIN_BUSY_S - 0.1, 0.5, 0.0), "b": (MIN_BUSY_S, 1.03, 0.02)}
    assert judge(Evidence(link_rates=rates)).verdict == "ok"


@pytest.mark.parametrize("what", ["queue_drops", "other_drops", "retransmits", "out_of_order"])
def test_any_loss_or_overtaking_degrades(what: str) -> None:
    found = judge(Evidence(**{what: 3}))
    assert found.verdict == "degraded"
    assert found.reasons[0].startswith("3 ")


def test_packets_that_a_change_of_level_let_pass_do_not_degrade() -> None:
    assert judge(Evidence(out_of_order=16, overtaking=16)).verdict == "ok"
    assert judge(Evidence(out_of_order=17, overtaking=16)).verdict == "degraded"
    assert judge(Evidence(out_of_order=999, overtaking=None)).verdict == "ok"


def test_a_setting_that_was_not_as_asked_for_invalidates() -> None:
    found = judge(Evidence(settings=["interface tor0-eth1: the shaper is gone"]))
    assert (found.verdict, found.reasons) == ("invalid", ("interface tor0-eth1: the shaper is gone",))


def test_a_run_cut_short_by_its_limit_says_so() -> None:
    verdict = judge(Evidence(enough_undisturbed=False))
    assert verdict.verdict == "degraded"
    assert verdict.reasons == ("fewer iterations were made than asked for: measure.limit came first",)
    assert not verdict.machine_caused
