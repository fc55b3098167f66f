from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from testbed import client
from testbed.engines.emulation.external.reports import HostReports, Reported, iteration_of, reported
from workloads.iteration.protocol import IterationEnded


def line(**values: object) -> bytes:
    return json.dumps(values).encode()


def test_what_is_outside_of_communication_is_compute() -> None:
    event = iteration_of("job", 3, [Reported(10.0, 11.0, ((10.2, 10.5), (10.6, 10.9)))], 2, None)
    phase = event.phases[0]
    assert (event.job, event.iteration) == ("job", 3)
    assert (phase.start, phase.ready, phase.communication_end, phase.end) == (10.0, 10.2, 10.9, 11.0)
    assert phase.compute == pytest.approx((0.4, 0.4))


def test_a_host_begins_with_its_first_process_and_ends_with_its_last() -> None:
    parts = [Reported(10.0, 11.0, ((10.5, 10.9),)), Reported(10.1, 11.2, ((10.4, 11.0),))]
    phase = iteration_of("job", 0, parts, 2, None).phases[0]
    assert (phase.start, phase.ready, phase.communication_end, phase.end) == (10.0, 10.4, 11.0, 11.2)


def test_without_communication_the_declared_compute_counts_or_all_of_it() -> None:
    part = [Reported(10.0, 11.0, ())]
    assert iteration_of("job", 0, part, 1, 0.25).phases[0].compute == (0.25,)
    assert iteration_of("job", 0, part, 1, None).phases[0].compute == (1.0,)


@pytest.mark.parametrize(
    "wrong",
    [
        b"[]",
        b"nonsense",
        line(start=1.0, end=2.0),
        line(start=2.0, end=1.0, communication=[]),
        line(start=1.0, end=2.0, communication=[[1.5, 2.5]]),
        line(start=1.0, end=2.0, communication=["x"]),
        line(start="soon", end=2.0, communication=[]),
    ],
)
def test_what_is_no_report_is_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError):
        reported(wrong)


def test_processes_that_use_the_client_begin_together_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[IterationEnded] = []
    wrong: list[str] = []
    path = tmp_path / "h0.sock"
    monkeypatch.setenv(client.SOCKET, str(path))
    monkeypatch.setattr(client, "_reporter", client._Reporter())

    def program() -> None:
        for _ in range(2):
            with client.iteration(), client.communication():
                pass
        connection = client._reporter.connection
        assert connection is not None
        connection.close()

    async def run() -> None:
        reports = HostReports("job", 1, 4, None, events.append, wrong.append)
        await reports.listen(path)
        thread = threading.Thread(target=program)
        thread.start()
        await asyncio.wait_for(reports.all_ready.wait(), 5.0)
        assert events == []
        reports.go()
        while len(events) < 2:
            await asyncio.sleep(0.01)
        thread.join()
        await reports.close()

    asyncio.run(asyncio.wait_for(run(), 10.0))
    assert [event.iteration for event in events] == [0, 1]
    assert len(events[0].phases[0].compute) == 4
    assert wrong == []


def test_outside_of_a_run_the_client_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(client.SOCKET, raising=False)
    monkeypatch.setattr(client, "_reporter", client._Reporter())
    client.iteration_done()
    client.iteration_done()
    answers = iter([False, True])
    client.wait(lambda: next(answers))
    assert client._reporter.connection is None
    assert list(answers) == []
