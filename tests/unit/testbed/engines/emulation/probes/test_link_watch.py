"""A link that does not carry is on record: which, since when and until when."""

from __future__ import annotations

import select
import socket
import struct

import pytest

from testbed.engines.emulation.probes.link_watch import LinkEvents, LinkStates, LinkWatch, State, states_in
from testbed.errors import RunFailedError
from testbed.fidelity.observations import Change
from testbed.fidelity.verdict import Evidence, judge


def message(kind: int, index: int, flags: int) -> bytes:
    """A netlink message about an interface, with an attribute of five bytes, padded."""
    body = struct.pack("=BBHiII", 0, 0, 1, index, flags, 0) + struct.pack("=HH", 5, 3) + b"x\0\0\0"
    return struct.pack("=IHHII", 16 + len(body) - 3, kind, 0, 0, 0) + body


def test_the_kernels_words_are_understood() -> None:
    told = [message(16, 1, 0x10043), message(16, 2, 0x42), message(16, 3, 0x3), message(17, 4, 0), message(3, 0, 0)]
    assert list(states_in(b"".join(told))) == [
        (1, "carries"),
        (2, "was down"),
        (3, "had no carrier"),
        (4, "was removed"),
    ]


def test_a_message_that_is_cut_off_ends_the_list() -> None:
    assert list(states_in(message(16, 1, 0x10043) + b"\x10\0\0")) == [(1, "carries")]


def test_the_loopback_of_this_namespace_is_listed() -> None:
    events = LinkEvents()
    select.select([events], [], [], 5.0)
    assert dict(events.read()).keys() >= {socket.if_nametoindex("lo")}
    watch = LinkWatch([(events, {})])
    watch.look(1.0)
    watch.close()
    assert watch.changes == []


def noted(*told: tuple[float, list[tuple[str, State]]]) -> list[Change]:
    states = LinkStates()
    for now, links in told:
        states.note(now, links)
    return states.changes


def test_a_link_that_stays_down_lasts_until_the_last_look() -> None:
    found = noted((0.1, [("a", "carries")]), (1.0, []), (1.1, [("a", "was down")]), (9.0, []))
    assert found == [Change("link", 1.0, 9.0, "was down", "a")]


def test_a_link_that_comes_back_is_closed_and_one_that_was_down_between_two_looks_is_seen() -> None:
    found = noted(
        (1.0, [("a", "had no carrier")]), (3.0, [("a", "carries")]), (4.0, [("b", "was down"), ("b", "carries")])
    )
    assert found == [
        Change("link", 0.0, 3.0, "had no carrier", "a", lasting=False),
        Change("link", 3.0, 4.0, "was down", "b", lasting=False),
    ]


def test_what_changes_between_two_faults_is_two_findings() -> None:
    found = noted((1.0, [("a", "was down")]), (2.0, [("a", "was down")]), (3.0, [("a", "was removed")]))
    assert [(change.what, change.from_s, change.to_s) for change in found] == [
        ("was down", 0.0, 3.0),
        ("was removed", 2.0, 3.0),
    ]


def test_a_link_that_is_removed_ends_the_run_and_names_itself() -> None:
    events = LinkEvents()
    watch = LinkWatch([(events, {})])
    watch.refuse_removed()
    watch._states.note(1.0, [("tor0->agg1", "was removed")])
    with pytest.raises(RunFailedError, match=r"^link tor0->agg1: was removed while the run needed it"):
        watch.refuse_removed()
    watch.close()


def test_a_link_that_was_down_makes_a_run_invalid_and_names_itself() -> None:
    verdict = judge(Evidence(changes=noted((3.0, []), (3.1, [("tor0->agg1", "was down")]), (8.0, [])), dilation=2.0))
    assert (verdict.verdict, verdict.reasons) == ("invalid", ("link tor0->agg1: was down (3 to 8 s)",))
    (finding,) = verdict.findings
    assert (finding.kind, finding.from_s, finding.to_s, finding.links) == ("link", 1.5, 4.0, ("tor0->agg1",))


def test_one_that_was_down_for_a_while_can_be_discarded_openly() -> None:
    changes = noted((3.0, [("a", "was down")]), (4.0, [("a", "carries")]))
    assert judge(Evidence(changes=changes, discard=True)).verdict == "ok"
    assert judge(Evidence(changes=changes)).verdict == "invalid"
