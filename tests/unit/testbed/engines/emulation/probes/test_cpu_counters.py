"""CPU time is told apart: idle, stolen, the run's own, and somebody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.probes.cpu_counters import CpuTimes, cpu_share, read_cpu_times

ticks = st.integers(0, 10_000)


def test_what_nobody_accounts_for_is_foreign() -> None:
    share = cpu_share(CpuTimes(0, 0, 0, 0, 0), CpuTimes(200, 100, 10, 20, 50), 5.0, 1.0)
    assert (share.idle, share.stolen, share.foreign) == (0.5, 0.05, pytest.approx(0.1))
    assert (share.time_s, share.duration_s) == (5.0, 1.0)


def test_ticks_that_a_process_brought_in_late_never_make_foreign_time_negative() -> None:
    assert cpu_share(CpuTimes(0, 0, 0, 0, 0), CpuTimes(100, 50, 0, 0, 80), 1.0, 1.0).foreign == 0.0


def test_no_tick_between_two_readings_blames_nobody() -> None:
    now = CpuTimes(7, 3, 0, 0, 2)
    share = cpu_share(now, now, 1.0, 0.0)
    assert (share.idle, share.stolen, share.foreign) == (1.0, 0.0, 0.0)


@given(ticks, ticks, ticks, ticks, ticks)
def test_shares_stay_within_the_whole(idle: int, stolen: int, interrupt: int, own: int, foreign: int) -> None:
    total = idle + stolen + interrupt + own + foreign
    share = cpu_share(CpuTimes(0, 0, 0, 0, 0), CpuTimes(total, idle, stolen, interrupt, own), 1.0, 1.0)
    assert share.idle + share.stolen + share.foreign <= 1.0 + 1e-9
    assert share.foreign * total == pytest.approx(foreign)


def test_the_machine_is_read_in_whole_ticks_that_only_grow() -> None:
    first, then = read_cpu_times(), read_cpu_times()
    assert 0 < first.idle < first.total <= then.total
    assert first.own > 0
