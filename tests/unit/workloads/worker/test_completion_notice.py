"""Notices of arrived messages: each reaches the host that sent the message, in whichever process that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workloads.worker.completion_notice import CompletionNotice
from workloads.worker.event_loop import Loop


class Process:
    """A process that serves ``hosts``, with what its hosts have heard."""

    def __init__(self, folder: Path, *hosts: str) -> None:
        self.loop = Loop()
        self.heard: list[tuple[str, str]] = []
        self.notices = CompletionNotice(
            self.loop, str(folder), hosts, lambda host, flow: self.heard.append((host, flow))
        )

    def turn(self) -> None:
        """Serve what there is, for ten milliseconds."""
        self.loop.running = True
        self.loop.at(self.loop.clock() + 0.01, lambda _late: setattr(self.loop, "running", False))
        self.loop.run()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(*hosts: str) -> Process:
        made.append(Process(tmp_path, *hosts))
        return made[-1]

    yield make
    for each in made:
        each.notices.close()


def test_a_notice_names_its_host_also_where_several_share_a_process(process: Callable[..., Process]) -> None:
    one, other = process("h0", "h2"), process("h1")
    other.notices.tell("h2", "f")
    other.notices.tell("h0", "g")
    one.turn()
    assert one.heard == [("h2", "f"), ("h0", "g")]


def test_a_host_of_the_same_process_hears_of_it_in_a_later_turn_of_the_loop(process: Callable[..., Process]) -> None:
    one = process("h0", "h2")
    one.notices.tell("h2", "f")
    assert one.heard == []
    one.turn()
    assert one.heard == [("h2", "f")]


def test_no_notice_is_lost_when_its_receiver_is_busy(process: Callable[..., Process]) -> None:
    """The kernel queues eleven."""
    one, other = process("h0"), process("h1")
    flows = [f"f{index}" for index in range(100)]
    for flow in flows:
        one.notices.tell("h1", flow)
    for _ in range(12):
        other.turn()
        one.turn()
    assert sorted(other.heard) == sorted(("h1", flow) for flow in flows)


def test_a_host_whose_worker_has_ended_needs_no_notice(process: Callable[..., Process]) -> None:
    one = process("h0")
    one.notices.tell("h1", "f")
    one.turn()
    late = process("h1")
    late.turn()
    assert one.heard == late.heard == []
