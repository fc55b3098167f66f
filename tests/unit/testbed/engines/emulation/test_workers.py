"""The pool of workers: answers are waited for host by host, notices go straight on, a failure ends the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from testbed.engines.emulation.workers import WorkerPool
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
    """What a pool sees of a worker process that tells ``events``; bytes are fed as they are."""

    def __init__(self, events: Sequence[Event | bytes]) -> None:
        self.stdout = asyncio.StreamReader()
        for event in events:
            self.stdout.feed_data(event if isinstance(event, bytes) else encode_event(event))

    async def wait(self) -> int:
        return 1


def heard(
    told: Mapping[str, Sequence[Event | bytes]], wait: Callable[[WorkerPool], Awaitable[None]]
) -> list[tuple[str, Event]]:
    """What the engine gets when the workers of the hosts tell ``told`` while it does ``wait``."""
    events: list[tuple[str, Event]] = []

    async def run() -> None:
        pool = WorkerPool(lambda host, event: events.append((host, event)), Path(), Path())
        readers = [asyncio.create_task(pool._read(host, Process(lines))) for host, lines in told.items()]  # type: ignore[arg-type]
        try:
            await wait(pool)
        finally:
            for reader in readers:
                reader.cancel()

    asyncio.run(run())
    return events


def test_an_answer_counts_when_every_host_has_given_it_about_that_job() -> None:
    async def wait(pool: WorkerPool) -> None:
        await pool.expect(Connected, "a", ["h0", "h1"])
        await pool.expect(Closed, "a", ["h1"])
        await pool.expect(Held, "f", ["h1"])

    told = {"h0": [Connected("a")], "h1": [Listening("a"), Connected("a"), Closed("a", 3), Held("f")]}
    assert sorted(map(str, heard(told, wait))) == sorted(
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


def test_an_event_that_nobody_knows_ends_the_run_by_its_name() -> None:
    with pytest.raises(RunFailedError, match="host h0 said is not understood: unknown event 'dance', expected one of"):
        heard({"h0": [b'{"event":"dance"}\n']}, lambda pool: pool.expect(Connected, "a", ["h0"]))
