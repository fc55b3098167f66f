"""The verdict: each kind of evidence alone changes it, and says in one line why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.fidelity.interference import (
    MAX_RUN_DELAY,
    MAX_STANDSTILL_S,
    MAX_STOLEN,
    MIN_IDLE_CPU,
    Second,
    disturbed_spans,
)
from testbed.fidelity.observations import Change, Order, Standstill, Wait, joined_standstills
from testbed.fidelity.verdict import (
    MAX_LINK_RATE_ERROR,
    MAX_QUOTA_S,
    MAX_TIMER_LATENESS_S,
    MIN_BUSY_S,
    Evidence,
    discarded_spans,
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


def test_a_second_of_which_other_guests_took_much_is_left_out_although_enough_was_idle() -> None:
    much, little = second(21.0, 0.6, stolen=MAX_STOLEN + 0.01), second(22.0, 0.6, stolen=MAX_STOLEN)
    assert disturbed_spans([*QUIET, much, little]) == [(20.0, 21.0)]
    found = judge(Evidence(seconds=[*QUIET, much, little]))
    assert found.verdict == "ok" and [finding.kind for finding in found.findings] == ["neighbours"]
    short = judge(Evidence(seconds=[*QUIET, much, little], enough_undisturbed=False))
    assert (short.verdict, short.machine_caused) == ("degraded", True)
    assert "other guests took more than 10% in 1 of 22 s" in short.reasons[0]


def test_other_processes_may_run_while_enough_is_idle() -> None:
    assert disturbed_spans([*QUIET, second(21.0, MIN_IDLE_CPU, foreign=0.3)]) == []


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


def test_a_job_that_began_late_is_out_of_step_and_degrades_the_run() -> None:
    found = judge(Evidence(timer_lateness_s=[0.0] * 100, out_of_step_s=LATE))
    assert found.verdict == "degraded"
    assert "25 ms late" in found.reasons[0] and "out of step" in found.reasons[0]
    assert judge(Evidence(out_of_step_s=MAX_TIMER_LATENESS_S)).verdict == "ok"


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
    assert verdict.reasons == ("fewer iterations were made than asked for: measure.time_limit came first",)
    assert not verdict.machine_caused


def test_a_run_whose_iterations_late_pauses_disturbed_is_not_said_to_be_cut_short_by_its_limit() -> None:
    late = judge(Evidence(timer_lateness_s=[0.05, 0.0], late=[(1.0, 1.05)], enough_undisturbed=False))
    assert late.reasons[0] == "too few iterations were undisturbed"


def test_every_complaint_has_a_finding_with_its_undilated_seconds() -> None:
    starved = [*QUIET[:4], second(5.0, 0.1), second(6.0, 0.2), *QUIET[6:]]
    found = judge(Evidence(seconds=starved, dilation=2.0))
    (finding,) = found.findings
    assert (finding.kind, finding.from_s, finding.to_s, finding.discarded) == ("cpu", 2.0, 3.0, False)


def test_what_neighbours_took_is_named_although_the_verdict_is_ok() -> None:
    found = judge(Evidence(seconds=[*QUIET, second(21.0, 0.05, foreign=0.6)]))
    assert found.verdict == "ok"
    (finding,) = found.findings
    assert (finding.kind, finding.discarded) == ("neighbours", True)
    assert "other processes took up to 60%" in finding.what


def test_a_process_that_stood_still_degrades_and_is_named() -> None:
    found = judge(Evidence(seconds=QUIET, standstills=[Standstill("the worker of host h0", 3.0, 3.25)]))
    assert found.verdict == "degraded"
    assert "the worker of host h0 stood still for 250 ms at 3.0 s" in found.reasons[0]


def test_a_standstill_while_neighbours_had_the_cpu_only_disturbs_iterations() -> None:
    still = Standstill("the worker of host h0", 3.0, 3.25)
    seconds = [*QUIET[:3], second(4.0, 0.6, stolen=0.1), *QUIET[4:]]
    assert judge(Evidence(seconds=seconds, standstills=[still], cores=2)).verdict == "ok"
    assert disturbed_spans(seconds, [still], cores=2) == [(3.0, 3.25)]
    assert disturbed_spans(seconds, [still], cores=1) == []


def test_a_stopped_process_is_nobody_elses_doing_and_others_explain_nothing_while_cpu_is_left() -> None:
    stolen = [second(1.0, 0.5, stolen=0.4)]
    assert judge(Evidence(seconds=stolen, standstills=[Standstill("w", 0.2, 0.5)], cores=2)).verdict == "ok"
    assert judge(Evidence(seconds=stolen, standstills=[Standstill("w", 0.2, 0.5, True)], cores=2)).verdict != "ok"
    foreign = [second(1.0, 0.5, foreign=0.4)]
    assert judge(Evidence(seconds=foreign, standstills=[Standstill("w", 0.2, 0.5)], cores=2)).verdict != "ok"


def test_what_a_timer_noticed_and_what_was_seen_from_outside_is_one_standstill() -> None:
    late = [Standstill("a", 1.05, 1.3), Standstill("b", 1.0, 1.2), Standstill("a", 5.0, 5.2)]
    found = joined_standstills(late, [Standstill("a", 1.0, 1.25, True)])
    assert found == [Standstill("a", 1.0, 1.3, True), Standstill("b", 1.0, 1.2), Standstill("a", 5.0, 5.2)]


def test_a_short_hitch_of_a_process_is_no_standstill() -> None:
    assert judge(Evidence(standstills=[Standstill("ovs-vswitchd", 0.0, MAX_STANDSTILL_S)])).findings == ()


def test_open_vswitch_held_back_by_a_quota_degrades() -> None:
    waits = [Wait("ovs-vswitchd", 4.0, 1.0, 0.3, 0.3), Wait("ovs-vswitchd", 5.0, 1.0, 0.0, MAX_QUOTA_S)]
    found = judge(Evidence(seconds=QUIET, waits=waits))
    assert found.verdict == "degraded"
    assert found.reasons == ("a CPU quota held ovs-vswitchd back in 1 of 20 s (for 300 ms at 4 s)",)
    assert [(f.kind, f.from_s, f.to_s) for f in found.findings] == [("quota", 3.0, 4.0)]


@pytest.mark.parametrize(("share", "verdict"), [(MAX_RUN_DELAY, "ok"), (MAX_RUN_DELAY + 0.01, "degraded")])
def test_a_process_that_waits_for_a_cpu_too_long_degrades(share: float, verdict: str) -> None:
    assert judge(Evidence(seconds=QUIET, waits=[Wait("ovs-vswitchd", 4.0, 1.0, share)])).verdict == verdict


def test_waiting_for_a_cpu_that_neighbours_had_is_theirs() -> None:
    seconds = [*QUIET[:3], second(4.0, 0.1, foreign=0.6), *QUIET[4:]]
    assert judge(Evidence(seconds=seconds, waits=[Wait("ovs-vswitchd", 4.0, 1.0, 0.9)])).verdict == "ok"


def test_waiting_while_other_guests_had_the_cpu_is_theirs_although_cpu_was_left() -> None:
    wait = Wait("ovs-vswitchd", 4.0, 1.0, 0.35)
    seconds = [*QUIET[:3], second(4.0, 0.6, stolen=0.09), *QUIET[4:]]
    assert judge(Evidence(seconds=seconds, waits=[wait], cores=2)).verdict == "ok"
    assert disturbed_spans(seconds, waits=[wait], cores=2) == [(3.0, 4.0)]
    few = judge(Evidence(seconds=seconds, waits=[wait], cores=2, enough_undisturbed=False))
    assert (few.verdict, few.machine_caused) == ("degraded", True)
    assert few.reasons[-1].endswith("CPU taken by neighbours meanwhile")


def test_waiting_for_longer_than_other_guests_had_the_cpu_or_while_only_processes_did_degrades() -> None:
    wait = Wait("ovs-vswitchd", 4.0, 1.0, 0.35)
    for other in (second(4.0, 0.6, stolen=0.08), second(4.0, 0.5, foreign=0.4)):
        seconds = [*QUIET[:3], other, *QUIET[4:]]
        found = judge(Evidence(seconds=seconds, waits=[wait], cores=2))
        assert (found.verdict, found.machine_caused) == ("degraded", False)
        assert disturbed_spans(seconds, waits=[wait], cores=2) == []


def order(lower_packets: int, waited_s: float = 1.0) -> Order:
    return Order(waited_s, 0, 3, lower_packets * 9000, 1e6, 9000)


def test_a_lower_level_served_while_a_higher_one_waits_degrades_and_names_link_and_levels() -> None:
    found = judge(Evidence(order={"tor0->agg0": order(10)}))
    assert found.verdict == "degraded"
    assert "on link tor0->agg0 level 3 got 5.4% of the capacity while level 0 waited" in found.reasons[0]
    assert found.findings[0].links == ("tor0->agg0",)


def test_packets_that_had_begun_and_short_glimpses_say_nothing_about_the_order() -> None:
    assert judge(Evidence(order={"a": order(6)})).verdict == "ok"
    assert judge(Evidence(order={"a": order(50, waited_s=0.05)})).verdict == "ok"


def test_a_setting_that_changed_while_the_run_went_on_invalidates_with_link_and_seconds() -> None:
    change = Change("setting", 3.0, 5.0, "the shaper is gone", "tor0->agg1", lasting=False)
    found = judge(Evidence(changes=[change]))
    assert (found.verdict, found.reasons) == ("invalid", ("link tor0->agg1: the shaper is gone (3 to 5 s)",))
    assert found.findings[0].links == ("tor0->agg1",)


LIMITED = {
    "own load": Evidence(seconds=[*QUIET[:4], second(5.0, 0.1), *QUIET[5:]]),
    "quota": Evidence(seconds=QUIET, waits=[Wait("ovs-vswitchd", 4.0, 1.0, 0.3, 0.3)]),
    "standstill": Evidence(seconds=QUIET, standstills=[Standstill("ovs-vswitchd", 3.0, 3.4)]),
    "setting": Evidence(changes=[Change("setting", 3.0, 5.0, "the shaper is gone", "a", lasting=False)]),
}


@pytest.mark.parametrize("name", LIMITED)
def test_discarding_leaves_out_what_is_limited_in_time_and_lists_it(name: str) -> None:
    assert judge(LIMITED[name]).verdict != "ok"
    found = judge(replace(LIMITED[name], discard=True))
    assert (found.verdict, found.reasons) == ("ok", ())
    assert [finding.discarded for finding in found.findings] == [True]
    (span,) = discarded_spans(LIMITED[name])
    assert (found.findings[0].from_s, found.findings[0].to_s) == span


@pytest.mark.parametrize("name", LIMITED)
def test_discarding_does_not_help_where_too_few_iterations_are_left(name: str) -> None:
    assert judge(replace(LIMITED[name], discard=True, enough_undisturbed=False)).verdict != "ok"


def test_what_lasts_until_the_end_or_concerns_the_whole_run_cannot_be_discarded() -> None:
    lasting = Change("setting", 3.0, 9.0, "the shaper is gone", "a")
    assert judge(Evidence(changes=[lasting], discard=True)).verdict == "invalid"
    assert judge(Evidence(link_rates={"a": (5.0, 0.8, 0.0)}, discard=True)).verdict == "degraded"
    assert judge(Evidence(retransmits=1, discard=True)).verdict == "degraded"
