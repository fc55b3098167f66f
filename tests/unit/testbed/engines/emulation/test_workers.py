"""The pool of workers: answers are waited for host by host, notices go straight on, a failure ends the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.workers import MOST_PROCESSES, WorkerPool, divide, worker_name
from testbed.errors import RunFailedError
from workloads.iteration.protocol import (
    Closed,
    Connected,
    Event,
    Failed,
    Held,
    Late,
    Listening,
    Shaped,
    encode_event,
)


class Process:
    """What a pool sees of a worker process that tells ``events`` on hosts; bytes are fed as they are."""

    status = 1

    def __init__(self, events: Iterable[tuple[str, Event | bytes]]) -> None:
        self.stdout = asyncio.StreamReader()
        for host, event in events:
            self.stdout.feed_data(event if isinstance(event, bytes) else encode_event(host, event))

    async def wait(self) -> int:
        return self.status


def heard(
    told: Mapping[str, Sequence[Event | bytes]],
    wait: Callable[[WorkerPool], Awaitable[None]],
    processes: int = MOST_PROCESSES,
) -> list[tuple[str, Event]]:
    """What the engine gets when ``processes`` workers tell ``told`` on the hosts while it does ``wait``."""
    events: list[tuple[str, Event]] = []

    def said_by(hosts: Iterable[str]) -> Iterable[tuple[str, Event | bytes]]:
        return [(host, event) for host in hosts for event in told[host]]

    async def run() -> None:
        pool = WorkerPool(lambda host, event: events.append((host, event)), Path())
        readers = [
            asyncio.create_task(pool._read(worker_name(hosts), Process(said_by(hosts))))  # type: ignore[arg-type]
            for hosts in divide(tuple(told), processes)
        ]
        try:
            await wait(pool)
        finally:
            for reader in readers:
                reader.cancel()

    asyncio.run(run())
    return events


@pytest.mark.parametrize("processes", [1, 2])
def test_an_answer_counts_when_every_host_has_given_it_about_that_job(processes: int) -> None:
    async def wait(pool: WorkerPool) -> None:
        await pool.expect(Connected, "a", ["h0", "h1"])
        await pool.expect(Closed, "a", ["h1"])
        await pool.expect(Held, "f", ["h1"])

    told = {"h0": [Connected("a")], "h1": [Listening("a"), Connected("a"), Closed("a", 3), Held("f")]}
    assert sorted(map(str, heard(told, wait, processes))) == sorted(
        str((host, event)) for host, events in told.items() for event in events
    )


def test_an_answer_about_another_job_or_of_another_kind_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.engines.emulation.workers._ANSWER_S", 0.05)
    with pytest.raises(RunFailedError, match="host h0 did not report 'connected' for a"):
        heard({"h0": [Connected("b"), Listening("a")]}, lambda pool: pool.expect(Connected, "a", ["h0"]))


def test_notices_are_passed_on_in_their_order() -> None:
    notices: list[Event] = [Shaped(1.0, 1.5), Late(2.0, 2.5)]

    async def wait(pool: WorkerPool) -> None:
        await pool.expect(Connected, "a", ["h0"])

    assert heard({"h0": [*notices, Connected("a")]}, wait)[:2] == [("h0", notice) for notice in notices]


def test_a_flow_that_breaks_ends_every_wait_in_its_own_words() -> None:
    with pytest.raises(RunFailedError, match="flow f of job a: Connection refused"):
        heard({"h0": [Failed("a", "f", "Connection refused")]}, lambda pool: pool.expect(Connected, "a", ["h0"]))


def test_a_worker_that_was_killed_is_named_before_what_broke_with_it() -> None:
    async def wait(pool: WorkerPool) -> None:
        await pool._fail("flow f of job a: was closed by its sender")
        for name, status in (("h1", 1), ("h0", -9), ("h2", 1)):
            ended = Process([])
            ended.stdout.feed_eof()
            ended.status = status
            await pool._read(f"the worker of host {name}", ended)  # type: ignore[arg-type]
        with pytest.raises(RunFailedError, match=r"^the worker of host h0 was ended by a signal \(Killed\)"):
            pool.check()

    heard({"h0": []}, wait)


def test_an_event_that_nobody_knows_ends_the_run_by_its_name() -> None:
    with pytest.raises(RunFailedError, match="host h0 said is not understood: unknown event 'dance', expected one of"):
        heard({"h0": [b'{"event":"dance"}\n']}, lambda pool: pool.expect(Connected, "a", ["h0"]))


@given(st.integers(0, 300), st.integers(1, 20))
def test_every_host_has_one_process_and_these_share_the_hosts_evenly(count: int, most: int) -> None:
    hosts = [f"h{index}" for index in range(count)]
    shares = divide(hosts, most)
    assert sorted(host for share in shares for host in share) == sorted(hosts)
    assert len(shares) == min(count, most)
    assert max(map(len, shares), default=0) - min(map(len, shares), default=0) <= 1


@given(st.integers(17, 200), st.integers(0, 199), st.integers(2, MOST_PROCESSES))
def test_a_job_on_neighbours_has_a_process_for_each_host(count: int, first: int, size: int) -> None:
    hosts = [f"h{index}" for index in range(count)]
    job = set(hosts[first % count :][:size])
    assert all(len(job & set(share)) <= 1 for share in divide(hosts))


def test_few_hosts_have_a_process_each() -> None:
    assert divide(["h0", "h1", "h2"]) == [("h0",), ("h1",), ("h2",)]


def test_a_worker_is_known_by_all_its_hosts() -> None:
    assert worker_name(("h0",)) == "the worker of host h0"
    assert worker_name(("h0", "h16", "h32")) == "the worker of hosts h0, h16, h32"
