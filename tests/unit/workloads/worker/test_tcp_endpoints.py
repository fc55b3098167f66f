"""Streams and programs of workers on socket pairs, with a clock that only moves when it is told."""

from __future__ import annotations

import heapq
import itertools
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.iteration.job_plan import IncomingMessage, OutgoingMessage, PhasePlan
from workloads.iteration.program import JobProgram
from workloads.iteration.protocol import PhaseTimes
from workloads.iteration.time_shift import PhaseKeeper, TimeShift
from workloads.worker import tcp_endpoints
from workloads.worker.tcp_endpoints import _MAX_SEND, TcpReceiver, TcpSender

SLICE = 100


@pytest.fixture(scope="module", autouse=True)
def _no_windows() -> Iterator[None]:
    """Socket pairs have no windows to clamp (``test_receive_window.py`` has connections that do)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tcp_endpoints, "_RECEIVES_UNTIL_KNOWN", 0)
        yield


@pytest.fixture
def pair() -> Iterator[tuple[TcpSender, TcpReceiver]]:
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    with one, other:
        yield TcpSender("f", one), TcpReceiver("f", other)


def test_a_message_arrives_whole(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, into = pair
    into.begin(1000, SLICE)
    out.begin(1000, 0, None)
    assert not out.send(SLICE) and out.done
    into.receive(SLICE)
    assert into.done and into.arrived == 1000


def test_nothing_leaves_before_the_message_begins_or_while_it_is_held(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, into = pair
    assert not out.send(SLICE)
    out.begin(10, 0, None)
    out.held = 1
    assert not out.send(SLICE) and out.sent == 0
    into.receive(SLICE)
    assert into.arrived == 0


def test_bytes_that_come_early_belong_to_the_next_message(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, into = pair
    into.begin(100, SLICE)
    for _ in range(2):
        out.begin(100, 0, None)
        out.send(SLICE)
    into.receive(SLICE)
    assert into.done and into.arrived == 100
    into.finish()
    assert into.arrived == 0
    into.begin(100, SLICE)
    assert into.done


def test_a_ring_step_forwards_whole_slices_past_its_lead(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, _ = pair
    before = TcpReceiver("g", out.connection)
    before.size, before.received = 1000, 250
    out.begin(1000, 300, before)
    out.send(SLICE)
    assert out.sent == 500
    before.received = 1000
    out.send(SLICE)
    assert out.done


def test_a_full_kernel_buffer_is_reported_and_the_rest_follows(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, into = pair
    size = 8 << 20
    into.begin(size, SLICE)
    out.begin(size, 0, None)
    assert out.send(SLICE)
    assert 0 < out.sent < size
    while not into.done:
        into.receive(SLICE)
        out.send(SLICE)
    assert out.done


def test_a_long_message_gives_others_their_turn_however_much_the_kernel_would_take() -> None:
    ours = Mock()
    ours.send.side_effect = len
    out = TcpSender("f", ours)
    out.begin(1 << 20, 0, None)
    turns = 1
    while out.send(SLICE):
        turns += 1
    assert out.done
    assert turns == (1 << 20) // _MAX_SEND > 1


def test_bytes_that_nobody_waits_for_are_received_in_batches_and_the_last_ones_at_once() -> None:
    """A receiver is woken at every slice while it forwards, then at a window's worth, and at the end."""
    one, other = socket.socketpair()
    other.setblocking(False)
    with one, other:
        into, wanted = TcpReceiver("f", other, sizes=[1000], forwarded=[200], window=300), []
        into.begin(1000, SLICE)
        while not into.done:
            wanted.append(into.lowat)
            one.send(bytes(into.lowat))
            into.receive(SLICE)
    assert wanted == [100, 100, 300, 300, 200]


@given(st.integers(1, 3000), st.integers(1, 700), st.data())
def test_no_slice_that_another_host_waits_for_is_held_back(size: int, slice_size: int, data: st.DataObject) -> None:
    """The next host sends its ``lead`` at once, the rest slice by slice: it wants all but ``lead`` bytes in slices."""
    lead = data.draw(st.integers(0, size))
    one, other = socket.socketpair()
    other.setblocking(False)
    with one, other:
        into = TcpReceiver("f", other, sizes=[size], forwarded=[size - lead], window=10 * slice_size)
        into.begin(size, slice_size)
        while not into.done:
            if into.arrived_whole_slices(slice_size) < size - lead:
                assert into.lowat <= slice_size
            more = data.draw(st.integers(0, min(slice_size - 1, size - into.arrived - into.lowat)))
            one.send(bytes(into.lowat + more))  # packets end anywhere
            into.receive(slice_size)


def test_a_sender_that_leaves_is_an_error_that_names_the_flow(pair: tuple[TcpSender, TcpReceiver]) -> None:
    out, into = pair
    out.connection.close()
    with pytest.raises(ConnectionResetError, match="flow f was closed"):
        into.receive(SLICE)


@given(st.integers(1, 5000), st.integers(0, 6000), st.integers(1, 700))
def test_forwardable_bytes_are_whole_slices_or_the_whole_message(size: int, received: int, slice_size: int) -> None:
    into = TcpReceiver("f", None)  # type: ignore[arg-type]
    into.size, into.received = size, received
    whole = into.arrived_whole_slices(slice_size)
    assert whole <= min(size, received)
    assert whole == size or (whole % slice_size == 0 and min(size, received) - whole < slice_size)


@dataclass
class World:
    """A clock with timers."""

    now: float = 0.0
    timers: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=itertools.count)

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        heapq.heappush(self.timers, (when, next(self.order), handler))

    def run(self, deliver: Callable[[], None], until: float) -> None:
        while self.timers and self.timers[0][0] <= until:
            self.now, _, handler = heapq.heappop(self.timers)
            handler(0.0)
            deliver()


@dataclass
class Ring:
    """Two hosts, a flow each way, one phase; times of the phases by host as reported."""

    world: World
    programs: list[JobProgram]
    rows: list[list[tuple[int, tuple[PhaseTimes, ...]]]]
    sockets: list[socket.socket]

    def deliver(self) -> None:
        """Hand over what was sent until nothing moves any more."""
        moved = True
        while moved:
            moved = False
            for program in self.programs:
                for stream in program.into.values():
                    before = stream.received
                    stream.receive(SLICE)
                    if stream.received > before:
                        moved = True
                        program.arrived(stream)


def ring_of(compute: tuple[float, float], overlap: float = 0.0, size: int = 1000, iterations: int = 3) -> Ring:
    world = World()
    ring = Ring(world, [], [[], []], [])
    for host in range(2):
        mine, others = ("ab", "ba")[host]
        out, into = OutgoingMessage(mine, size, others, size // 2), IncomingMessage(others, size)
        plan = PhasePlan(compute[host], overlap, (out,), (into,))
        seconds, rows = compute[host], ring.rows[host]
        ring.programs.append(
            JobProgram(
                (plan,),
                lambda _i, _p, seconds=seconds: [seconds],
                SLICE,
                0.01,
                iterations,
                lambda: world.now,
                world.at,
                lambda i, r, _late, _waited, rows=rows: rows.append((i, r)),
                lambda _s: None,
            )
        )
    for flow, (source, target) in {"a": (0, 1), "b": (1, 0)}.items():
        one, other = socket.socketpair()
        for end in (one, other):
            end.setblocking(False)
            ring.sockets.append(end)
        ring.programs[source].out[flow] = TcpSender(flow, one)
        ring.programs[target].into[flow] = TcpReceiver(flow, other)
    return ring


@pytest.fixture
def make_ring() -> Iterator[Callable[..., Ring]]:
    made: list[Ring] = []

    def make(*arguments: object, **options: object) -> Ring:
        made.append(ring_of(*arguments, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for ring in made:
        for end in ring.sockets:
            end.close()


def run(ring: Ring, until: float = 1000.0) -> None:
    for program in ring.programs:
        program.start(1.0)
    ring.world.run(ring.deliver, until)


def test_both_hosts_make_every_iteration_and_then_stop(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0))
    run(ring)
    assert [[iteration for iteration, _ in rows] for rows in ring.rows] == [[0, 1, 2], [0, 1, 2]]
    assert ring.world.timers == []


def test_a_job_that_begins_late_reports_it_with_its_first_iteration() -> None:
    world, reported = World(), list[float]()
    program = JobProgram(
        (PhasePlan(1.0, 0.0, (), ()),),
        lambda _i, _p: [1.0],
        SLICE,
        0.01,
        2,
        lambda: world.now,
        world.at,
        lambda _i, _times, late, _waited: reported.append(late),
        lambda _s: None,
    )
    program.start(1.0)
    for lateness in (0.03, 0.001, 0.002):
        world.now, _, handler = heapq.heappop(world.timers)
        handler(lateness)
    assert reported == [0.03, 0.002]


def test_a_paced_message_begins_later_and_nothing_of_it_leaves_before(
    make_ring: Callable[..., Ring], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TcpSender, "hold_back_s", lambda _stream, departure: 0.5 - departure)
    ring = make_ring((1.0, 1.0), iterations=1)
    stream, sent = ring.programs[0].out["a"], []
    ring.world.at(2.4, lambda _late: sent.append(stream.sent))
    run(ring)
    (times,) = ring.rows[0][0][1]
    assert sent == [0]
    assert times.communication_end == pytest.approx(times.ready + 0.5)


def test_a_phase_is_compute_then_messages_that_leave_one_packet_time_later(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0), iterations=1)
    run(ring)
    (times,) = ring.rows[0][0][1]
    assert (times.start, times.ready, times.compute) == (1.0, 2.0, (1.0,))
    assert times.communication_end == times.end == pytest.approx(2.01)


@pytest.mark.parametrize(("busy", "end"), [((True, True), 2.0), ((True, False), 2.01), ((False, False), 2.01)])
def test_a_message_does_not_wait_for_a_bucket_that_others_keep_empty(
    busy: tuple[bool, bool], end: float, make_ring: Callable[..., Ring]
) -> None:
    ring = make_ring((1.0, 1.0), iterations=1)
    asked: list[str] = []
    for program, answer in zip(ring.programs, busy, strict=True):
        program.link_is_busy = lambda flow, answer=answer: asked.append(flow) or answer  # type: ignore[misc]
    run(ring)
    assert asked == ["a", "b"]
    assert ring.rows[0][0][1][0].communication_end == pytest.approx(end)


def test_a_late_host_delays_the_one_that_waits_for_its_bytes(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 3.0), iterations=1)
    run(ring)
    for rows in ring.rows:
        assert rows[0][1][0].end == pytest.approx(4.01)


def test_communication_under_compute_ends_before_the_phase_does(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0), overlap=0.5, iterations=1)
    run(ring)
    (times,) = ring.rows[0][0][1]
    assert (times.ready, times.communication_end, times.end) == (1.5, pytest.approx(1.51), 2.0)


def test_a_job_that_is_halted_sends_and_reports_nothing_more(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0))
    run(ring, until=2.5)
    for program in ring.programs:
        program.halt()
    ring.world.run(ring.deliver, 1000.0)
    assert [len(rows) for rows in ring.rows] == [1, 1]


def test_a_held_flow_goes_on_where_it_was_when_it_is_resumed(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0), iterations=2)
    held = ring.programs[0].out["a"]
    held.held = 1
    run(ring, until=50.0)
    assert ring.rows == [[], []]
    ring.world.now = 60.0
    held.held = 0
    ring.programs[0].resume(held)
    ring.deliver()
    ring.world.run(ring.deliver, 1000.0)
    assert [len(rows) for rows in ring.rows] == [2, 2]
    assert ring.rows[1][0][1][0].end == 60.0


def test_a_shifted_job_waits_for_its_phase_before_it_computes(make_ring: Callable[..., Ring]) -> None:
    ring = make_ring((1.0, 1.0), iterations=2)
    for program in ring.programs:
        program.phase_keeper = PhaseKeeper(TimeShift(anchor=1.0, shift=0.5, period=1.1))
    run(ring)
    starts = [times[0].start for _, times in ring.rows[0]]
    assert starts == [1.5, pytest.approx(2.6)]
