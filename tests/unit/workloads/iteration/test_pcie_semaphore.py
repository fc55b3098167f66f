"""PcieSemaphore on a PCIe link: who waits, who goes on, and that everybody's iterations end."""

from __future__ import annotations

import heapq
import itertools
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.iteration.hold import Hold
from workloads.iteration.job_plan import IncomingMessage, OutgoingMessage, PhasePlan
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.program import JobProgram
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender

SLICE = 100
LINK = "h0s0->h0n0"


class Resumed:
    """Streams that were let go on, in order."""

    def __init__(self) -> None:
        self.flows: list[str] = []
        self.pcie = PcieSemaphore(lambda stream: self.flows.append(stream.flow))

    def stream(self, flow: str) -> TcpSender:
        return TcpSender(flow, None)  # type: ignore[arg-type]


@pytest.fixture
def table() -> Resumed:
    return Resumed()


def test_a_lower_job_waits_from_the_first_to_the_last_byte_of_a_higher_one(table: Resumed) -> None:
    table.pcie.assign({"high": (LINK, 0), "low": (LINK, 1)})
    high, low = table.stream("high"), table.stream("low")
    table.pcie.began([low])
    assert not low.held
    table.pcie.began([high])
    assert low.held == Hold.PCIE_TURN and not high.held and table.flows == []
    table.pcie.sent(high)
    assert not low.held and table.flows == ["low"]


def test_a_lower_job_that_begins_later_waits_too(table: Resumed) -> None:
    table.pcie.assign({"high": (LINK, 0), "low": (LINK, 5)})
    high, low = table.stream("high"), table.stream("low")
    table.pcie.began([high])
    table.pcie.began([low])
    assert low.held == Hold.PCIE_TURN


def test_equals_other_links_and_flows_without_a_place_do_not_wait(table: Resumed) -> None:
    table.pcie.assign({"a": (LINK, 1), "b": (LINK, 1), "c": ("h0s1->h0n1", 7)})
    streams = [table.stream(flow) for flow in ("a", "b", "c", "d")]
    for stream in streams:
        table.pcie.began([stream])
    assert [stream.held for stream in streams] == [0, 0, 0, 0]


def test_a_flow_whose_path_changes_does_not_keep_the_link(table: Resumed) -> None:
    table.pcie.assign({"high": (LINK, 0), "low": (LINK, 1)})
    high, low = table.stream("high"), table.stream("low")
    table.pcie.began([high, low])
    high.held |= Hold.PATH_CHANGE
    table.pcie.changed("high")
    assert not low.held and table.flows == ["low"]
    high.held &= ~Hold.PATH_CHANGE
    table.pcie.changed("high")
    assert low.held == Hold.PCIE_TURN


def test_new_ranks_count_at_once_and_no_ranks_free_all(table: Resumed) -> None:
    table.pcie.assign({"a": (LINK, 0), "b": (LINK, 1)})
    a, b = table.stream("a"), table.stream("b")
    table.pcie.began([a, b])
    table.pcie.assign({"a": (LINK, 1), "b": (LINK, 0)})
    assert (a.held, b.held) == (Hold.PCIE_TURN, 0)
    table.pcie.assign({})
    assert (a.held, b.held) == (0, 0)
    assert table.flows == ["b", "a"]


def test_a_job_that_leaves_lets_the_others_go_on(table: Resumed) -> None:
    table.pcie.assign({"high": (LINK, 0), "low": (LINK, 1)})
    low = table.stream("low")
    table.pcie.began([table.stream("high"), low])
    table.pcie.left(["high", "other"])
    assert table.flows == ["low"]


@dataclass
class Cluster:
    """Ring jobs over hosts that have one PCIe link each; a clock that only moves when told. Close the sockets."""

    now: float = 0.0
    timers: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=itertools.count)
    programs: dict[tuple[str, int], JobProgram] = field(default_factory=dict)
    pcie: dict[int, PcieSemaphore] = field(default_factory=dict)
    places: dict[int, dict[str, tuple[str, int]]] = field(default_factory=dict)
    ended: list[tuple[str, int, int, float]] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        heapq.heappush(self.timers, (when, next(self.order), handler))

    def resume(self, stream: TcpSender) -> None:
        job, _, host = stream.flow.partition("/")
        self.programs[job, int(host)].resume(stream)

    def add_ring(self, name: str, hosts: list[int], rank: int, compute: float, overlap: float, size: int) -> None:
        for index, host in enumerate(hosts):
            mine, others = f"{name}/{host}", f"{name}/{hosts[index - 1]}"
            out, into = OutgoingMessage(mine, size, others, size // len(hosts)), IncomingMessage(others, size)
            plan = PhasePlan(compute, overlap, (out,), (into,))
            self.programs[name, host] = JobProgram(
                (plan,),
                lambda i, _p: [compute * (1 + 0.1 * (i % 2))],
                SLICE,
                0.01,
                3,
                lambda: self.now,
                self.at,
                lambda i, _r, _l, _w, host=host: self.ended.append((name, host, i, self.now)),
                lambda _s: None,
            )
            turns = self.pcie.setdefault(host, PcieSemaphore(self.resume))
            self.programs[name, host].pcie = turns
            self.places.setdefault(host, {})[mine] = (f"link {host}", rank)
        for index, host in enumerate(hosts):
            one, other = socket.socketpair()
            for end in (one, other):
                end.setblocking(False)
                self.sockets.append(end)
            flow, target = f"{name}/{host}", hosts[(index + 1) % len(hosts)]
            self.programs[name, host].out[flow] = TcpSender(flow, one)
            self.programs[name, target].into[flow] = TcpReceiver(flow, other)

    def run(self) -> None:
        for host, turns in self.pcie.items():
            turns.assign(self.places[host])
        for program in self.programs.values():
            program.start(1.0)
        while self.timers:
            self.now, _, handler = heapq.heappop(self.timers)
            handler(0.0)
            while any([self._deliver(program) for program in self.programs.values()]):
                pass
            self._check_order()

    def _deliver(self, program: JobProgram) -> bool:
        moved = False
        for stream in program.into.values():
            before = stream.received
            stream.receive(SLICE)
            if stream.received > before:
                moved = True
                program.arrived(stream)
        return moved

    def _check_order(self) -> None:
        """On no link does a flow wait that has nobody to wait for."""
        for (job, host), program in self.programs.items():
            stream = program.out[f"{job}/{host}"]
            if stream.held & Hold.PCIE_TURN:
                others = [
                    (self.places[host][flow][1], other.out[flow])
                    for (_, at), other in self.programs.items()
                    if at == host
                    for flow in other.out
                ]
                mine = self.places[host][stream.flow][1]
                assert any(rank < mine and each.started and not each.done for rank, each in others)

    def close(self) -> None:
        for end in self.sockets:
            end.close()


JOBS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=2, max_size=4, unique=True),
        st.integers(0, 3),
        st.floats(0.1, 2.0),
        st.floats(0.0, 1.0),
        st.integers(4 * SLICE, 5000),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(JOBS)
def test_every_job_makes_its_iterations_whatever_the_ranks_and_the_order_of_hosts(
    jobs: list[tuple[list[int], int, float, float, int]],
) -> None:
    cluster = Cluster()
    try:
        for number, (hosts, rank, compute, overlap, size) in enumerate(jobs):
            cluster.add_ring(f"j{number}", hosts, rank, compute, overlap, size)
        cluster.run()
        expected = sum(len(hosts) for hosts, *_ in jobs) * 3
        assert len(cluster.ended) == expected
        assert not any(stream.held for program in cluster.programs.values() for stream in program.out.values())
    finally:
        cluster.close()


def test_rings_that_meet_head_on_at_two_hosts_do_not_lock_each_other() -> None:
    cluster = Cluster()
    try:
        cluster.add_ring("high", [0, 1], 0, 1.0, 0.0, 3000)
        cluster.add_ring("low", [1, 0], 1, 1.0, 0.0, 3000)
        cluster.run()
        ends = {name: max(time for job, *_, time in cluster.ended if job == name) for name in ("high", "low")}
        assert len(cluster.ended) == 12 and ends["high"] <= ends["low"]
    finally:
        cluster.close()
