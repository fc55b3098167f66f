"""What is watched through a run: the order of levels, queues as they were set, packets along their path, processes."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controller.service.messages import VerificationAnswer
from testbed.engines.emulation.probes.netlink import Setting
from testbed.engines.emulation.probes.order_probe import OrderedLink, OrderProbe
from testbed.engines.emulation.probes.path_watch import PathSeries, PathWatch
from testbed.engines.emulation.probes.proc_files import ProcFiles
from testbed.engines.emulation.probes.process_watch import ProcessWatch, run_delay_ns, state_of, throttled_s
from testbed.engines.emulation.probes.queue_watch import QueueWatch, WatchedLink, differences
from testbed.fidelity.observations import Order
from workloads.iteration.protocol import Event, Late
from workloads.worker.heartbeat import WORTH_TELLING_S, Heartbeat

WATCH = "testbed.engines.emulation.probes.process_watch"
RATE = 8e6
"""A megabyte a second."""


def ordered() -> OrderedLink:
    return OrderedLink(None, 1, {}, RATE, burst=1000)  # type: ignore[arg-type]


def seen(link: OrderedLink) -> Order:
    found = link.order(packet=1000, origin=0.0)
    assert found is not None
    return found


def test_bytes_of_a_lower_level_count_while_a_higher_one_provably_waits() -> None:
    link = ordered()
    link.look(1.0, 1.0, {0: (0, 50_000), 3: (0, 9000)})
    link.look(1.01, 1.01, {0: (5000, 45_000), 3: (4000, 5000)})
    found = seen(link)
    assert (found.higher, found.lower, found.lower_bytes) == (0, 3, 4000)
    assert found.waited_s == pytest.approx(0.01)
    assert found.capacity == pytest.approx(10_000)


def test_a_higher_level_that_may_have_run_empty_in_between_proves_nothing() -> None:
    link = ordered()
    link.look(1.0, 1.0, {0: (0, 10_500), 3: (0, 9000)})
    link.look(1.01, 1.01, {0: (8000, 9000), 3: (4000, 5000)})
    assert link.order(1000, 0.0) is None


def test_what_higher_levels_than_the_waiting_one_send_is_as_it_should_be() -> None:
    link = ordered()
    link.look(1.0, 1.0, {0: (0, 0), 3: (0, 50_000)})
    link.look(1.01, 1.01, {0: (9000, 0), 3: (500, 49_500)})
    assert link.order(1000, 0.0) is None  # no level below: nothing could have been wrong


def test_only_links_that_carry_several_levels_are_watched() -> None:
    links = {name: ordered() for name in ("a", "b", "c")}
    probe = OrderProbe(links, 1000)
    probe.focus({"a": {0: 100}, "b": {0: 100, 7: 100}, "c": {1: 5, 2: 5}})
    assert probe._watched == [links["b"], links["c"]]


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value


def htb(rate: int) -> bytes:
    return attribute(1, struct.pack("=8xI", rate // 8) + bytes(32))


HELD = {
    ("class", 0xFFFFFFFF, 0x10001): htb(12_613_000),
    ("class", 0x10001, 0x10010): htb(8),
    ("filter", 0x10000, 0x80000800): attribute(1, struct.pack("=I", 0x10010)),
    ("filter", 0x10000, 0x80000801): attribute(1, struct.pack("=I", 0x10002)),
}


def without(target: int) -> dict[tuple[str, int, int], bytes]:
    """``HELD`` without the filter that leads to the class ``target``."""
    return {key: held for key, held in HELD.items() if key[0] == "class" or Setting(*key, held).target != target}


def test_the_rate_of_a_class_and_the_target_of_a_filter_are_read_from_the_kernels_words() -> None:
    assert Setting("class", 0, 1, htb(12_613_000)).rate == 12_613_000
    assert Setting("filter", 0, 1, HELD["filter", 0x10000, 0x80000800]).target == 0x10010


@pytest.mark.parametrize(
    ("now", "what"),
    [
        ({}, "the shaper is gone"),
        ({**HELD, ("class", 0xFFFFFFFF, 0x10001): htb(10**7)}, "the shaper was set from 12613000 to 10000000 bit/s"),
        (without(0x10010), "the filter of DSCP that leads to level 0 is gone"),
        (without(0x10002), "the filter that leads acknowledgements to their class is gone"),
        ({**HELD, ("class", 0x10001, 0x10010): htb(800)}, "class 1:10 is not as it was set (rate 8, now 800)"),
        ({**HELD, ("class", 0x10001, 0x10019): htb(8)}, "class 1:19 was added"),
    ],
)
def test_what_differs_from_what_was_set_is_said_in_words(now: Mapping[tuple[str, int, int], bytes], what: str) -> None:
    assert differences(HELD, now) == [what]
    assert differences(HELD, HELD) == []


class Queues:
    """A socket that answers with what is held at the moment."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int, int], bytes] = dict(HELD)

    def settings(self, interface: int, parent: int) -> list[Setting]:
        return [Setting(kind, up, handle, words) for (kind, up, handle), words in self.held.items()]


def test_a_queue_that_was_wiped_and_set_up_again_is_reported_with_its_seconds() -> None:
    queues = Queues()
    watch = QueueWatch({"a": WatchedLink(queues, 1, 0x10000)})  # type: ignore[arg-type]
    for now in range(1, 10):
        queues.held = {} if 4 <= now < 7 else dict(HELD)
        list(watch.looking(float(now)))
    (change,) = watch.changes
    assert (change.from_s, change.to_s, change.lasting) == (3.0, 7.0, False)
    assert (change.link, change.what) == ("a", "the shaper is gone")


def test_a_queue_that_stays_wiped_is_lasting() -> None:
    queues = Queues()
    watch = QueueWatch({"a": WatchedLink(queues, 1, 0x10000)})  # type: ignore[arg-type]
    queues.held = {}
    list(watch.looking(1.0))
    list(watch.looking(2.0))
    (change,) = watch.changes
    assert (change.from_s, change.to_s, change.lasting) == (0.0, 2.0, True)


def test_packets_that_left_their_path_between_two_looks_are_found_after_the_rule_is_back() -> None:
    series = PathSeries(slack=20)
    series.note(5.0, 1, [], {"f": [1000, 1000, 990]})
    series.note(10.0, 1, [], {"f": [2000, 1700, 1990]})
    (change,) = series.changes
    assert (change.from_s, change.to_s, change.lasting) == (5.0, 10.0, False)
    assert change.what == "300 of 1000 packets of flow f left its path"


@pytest.mark.parametrize(
    ("version", "packets"), [(1, [2000, 1985, 1995]), (2, [2000, 100, 2000]), (2, [200, 10, 2000])]
)
def test_packets_under_way_and_rules_of_another_decision_are_no_detour(version: int, packets: list[int]) -> None:
    series = PathSeries(slack=20)
    series.note(5.0, 1, [], {"f": [1000, 1000, 1000]})
    series.note(10.0, version, [], {"f": packets})
    assert series.changes == []


def test_counters_that_took_long_to_read_may_differ_by_what_was_sent_meanwhile() -> None:
    for took_s, changes in ((0.0, 1), (1.5, 1), (2.0, 0)):
        series = PathSeries(slack=20, rate=10.0)
        series.note(5.0, 1, [], {"f": [1000, 1000]}, took_s)
        series.note(10.0, 1, [], {"f": [2000, 1945]}, took_s)
        assert len(series.changes) == changes


def test_a_counter_that_went_back_under_one_decision_is_a_replaced_rule() -> None:
    series = PathSeries(slack=20)
    series.note(5.0, 1, [], {"f": [1000, 1000]})
    series.note(10.0, 1, [], {"f": [2000, 500]})
    assert [change.what for change in series.changes] == ["a rule of flow f was replaced"]


def test_a_rule_that_was_wrong_for_a_while_has_its_seconds() -> None:
    series = PathSeries(slack=20)
    for now in (5.0, 10.0, 15.0, 20.0):
        series.note(now, 1, ["switch tor0 treats x otherwise"] if now in (10.0, 15.0) else [], {})
    (change,) = series.changes
    assert (change.from_s, change.to_s, change.lasting) == (5.0, 20.0, False)


def watch_of(*answers: list[str], versions: tuple[int | None, ...] = (1,)) -> tuple[PathWatch, list[str]]:
    left, numbers = list(answers), list(versions)

    async def check(thorough: bool) -> VerificationAnswer:
        return VerificationAnswer(tuple(left.pop(0)), 0, {})

    watch = PathWatch(check, lambda: numbers.pop(0) if len(numbers) > 1 else numbers[0], 0.0, 20)
    return watch, asyncio.run(watch.look())


def test_a_rule_on_its_way_is_looked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.engines.emulation.probes.path_watch.CONFIRM_S", 0.0)
    watch, found = watch_of(["switch tor0 lacks the rule"], [])
    assert (found, watch.changes) == ([], [])
    watch, found = watch_of(["switch tor0 lacks the rule"], ["switch tor0 lacks the rule"])
    assert found == ["switch tor0 lacks the rule"]
    assert len(watch.changes) == 1


@pytest.mark.parametrize("versions", [(None,), (1, 2)])
def test_nothing_is_held_against_a_decision_that_is_being_carried_out(versions: tuple[int | None, ...]) -> None:
    watch, _ = watch_of(["switch tor0 lacks the rule"], versions=versions)
    assert watch.changes == []


def test_this_process_is_running_and_its_waits_are_counted() -> None:
    files = ProcFiles()
    assert state_of(os.getpid(), os.getpid(), files) in "RS"
    assert run_delay_ns(os.getpid(), os.getpid(), files) > 0
    files.close()
    watch = ProcessWatch({"this": os.getpid()}, 0.0)
    watch.sample(1.0)
    (wait,) = watch.waits
    assert (wait.process, wait.quota_s) == ("this", 0.0)
    assert 0.0 <= wait.share <= 1.0


def test_a_process_that_stops_goes_on_and_ends_is_seen_through_files_that_stay_open() -> None:
    child = subprocess.Popen(["sleep", "60"])
    files = ProcFiles()

    def becomes(states: str) -> bool:
        """Whether the child is in one of ``states`` before long."""
        for _ in range(3000):
            if state_of(child.pid, child.pid, files) in states:
                return True
            time.sleep(0.01)
        return False

    assert becomes("S")
    child.send_signal(signal.SIGSTOP)
    assert becomes("T")
    child.send_signal(signal.SIGCONT)
    assert becomes("S")
    child.kill()
    child.wait()
    assert becomes("X")
    assert run_delay_ns(child.pid, child.pid, files) == 0
    files.close()


def test_files_beyond_a_share_of_the_descriptors_are_read_without_being_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.engines.emulation.probes.proc_files.resource.getrlimit", lambda which: (8, 8))
    files = ProcFiles()
    paths = [str(tmp_path / str(number)) for number in range(5)]
    for path in paths:
        Path(path).write_text("before")
    assert [files.read(path) for path in paths] == [b"before"] * 5
    for path in paths:
        Path(path).write_text("now")
    assert [files.read(path) for path in paths] == [b"now"] * 5
    assert len(files._open) == 2
    files.keep(paths[:1])
    assert list(files._open) == paths[:1]
    files.close()
    assert files.read(str(tmp_path / "none")) == b""


def test_a_process_seen_stopped_stood_still_until_it_is_seen_going(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter("STTS" + "T")
    monkeypatch.setattr(f"{WATCH}.state_of", lambda pid, thread, files: next(states) if thread == pid else "S")
    watch = ProcessWatch({"w": os.getpid()}, 0.0)
    for look in range(5):
        watch.look(0.1 * look)
    watch.finish(1.0)
    spans = [(round(s.from_s, 3), round(s.to_s, 3)) for s in watch.standstills]
    assert spans == [(0.1, 0.3), (0.4, 1.0)]


@pytest.mark.parametrize(("states", "share"), [("SSSSSSSSS", 0.1), ("SSRSSSSSS", 0.5), ("", 0.5)])
def test_a_thread_that_was_never_seen_ready_waited_no_longer_than_between_two_looks(
    states: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = iter([0, 500_000_000])
    monkeypatch.setattr(f"{WATCH}._threads", lambda pid: [pid])
    monkeypatch.setattr(f"{WATCH}.run_delay_ns", lambda pid, thread, files: next(counted))
    watch = ProcessWatch({"w": 1}, 0.0)
    for number, state in enumerate(states, start=1):
        monkeypatch.setattr(f"{WATCH}.state_of", lambda pid, thread, files, state=state: state)
        watch.look(0.1 * number)
    watch.sample(1.0)
    assert [wait.share for wait in watch.waits] == [pytest.approx(share)]


@pytest.mark.parametrize(
    "text", ["usage_usec 5\nnr_throttled 2\nthrottled_usec 250000\n", "nr_throttled 2\nthrottled_time 250000000\n"]
)
def test_what_a_quota_held_back_is_read_from_either_version_of_cgroups(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu.stat").write_text(text)
    assert throttled_s(tmp_path) == 0.25
    assert throttled_s(tmp_path / "gone") == 0.0


class Clock:
    """A loop whose time is set by hand."""

    def __init__(self) -> None:
        self.now, self.due = 10.0, 0.0

    def clock(self) -> float:
        return self.now

    def at(self, when: float, handler: Any) -> None:
        self.due, self.handler = when, handler


def test_a_worker_tells_when_it_was_not_served_and_nothing_else() -> None:
    told: list[Event] = []
    loop = Clock()
    Heartbeat(loop, told.append)  # type: ignore[arg-type]
    for lateness in (0.001, WORTH_TELLING_S, 0.25):
        loop.now = loop.due + lateness
        loop.handler(lateness)
    (event,) = told
    assert isinstance(event, Late)
    assert event.end - event.start == pytest.approx(0.25)
    assert loop.due > loop.now
