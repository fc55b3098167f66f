"""Cables that fail while jobs run: the scheduler decides without them, and with them again."""

from __future__ import annotations

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.schedulers.registry import create
from controller.service.messages import CommitRequest, JobRequest, LinkRequest, link_request_from_json
from controller.service.rest import route
from controller.service.service import RequestError, Service
from tests.unit.controller.conftest import ring, small

CABLES = ("tor0->agg0", "tor0->agg1")
BACK = {"tor0->agg0": "agg0->tor0", "tor0->agg1": "agg1->tor0"}


def serving(scheduler: str = "crux") -> Service:
    fabric = small()
    service = Service(MemoryNetwork(), create(scheduler))
    service.put_fabric(fabric)
    service.post_job(JobRequest(ring("a", fabric, [0, 2])))
    service.post_job(JobRequest(ring("b", fabric, [1, 3], first_port=30000)))
    return service


def used(service: Service) -> set[str]:
    decision = service.get_state().decision
    assert decision is not None
    return {link for path in decision.paths.values() for link in path}


@pytest.mark.parametrize("scheduler", ["ecmp", "crux"])
@pytest.mark.parametrize("cable", CABLES)
def test_no_flow_stays_on_a_cable_that_failed_in_either_direction(scheduler: str, cable: str) -> None:
    service = serving(scheduler)
    answer = service.post_link(LinkRequest(cable, "down"))
    assert not used(service) & {cable, BACK[cable]}
    assert answer.confirmed and all(change.path_changed or change.level_changed for change in answer.changes)
    assert not [line for line in service.get_verification().mismatches if "packets" not in line]


def test_flows_that_are_prepared_move_at_their_commit() -> None:
    service = serving()
    (cable,) = [cable for cable in CABLES if {cable, BACK[cable]} & used(service)][:1]
    answer = service.post_link(LinkRequest(cable, "down", "prepare"))
    moving = tuple(change.flow for change in answer.changes)
    assert moving and set(service.get_state().pending) == set(moving)
    service.post_commit(CommitRequest(moving))
    assert service.get_state().pending == ()
    assert service.get_verification().mismatches == ()


def test_a_cable_that_is_back_is_used_again() -> None:
    service = serving()
    before = used(service)
    for cable in CABLES:
        service.post_link(LinkRequest(cable, "down"))
        service.post_link(LinkRequest(BACK[cable], "up"))
    assert used(service) == before


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        (LinkRequest("tor0->agg7", "down"), 404, "no link named 'tor0->agg7'"),
        (LinkRequest("tor0->agg0", "up"), 400, "link 'tor0->agg0' is not down"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(request_: LinkRequest, status: int, message: str) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        serving().post_link(request_)
    assert raised.value.status == status


def test_a_cable_cannot_fail_twice_and_a_refusal_changes_nothing() -> None:
    service = serving()
    service.post_link(LinkRequest("tor0->agg0", "down"))
    before = service.get_state()
    with pytest.raises(RequestError, match="link 'agg0->tor0' is down already"):
        service.post_link(LinkRequest("agg0->tor0", "down"))
    assert service.get_state() == before
    service.post_link(LinkRequest("tor0->agg0", "up"))


def test_jobs_without_any_way_are_named_and_wait() -> None:
    service = serving()
    answers = [service.post_link(LinkRequest(cable, "down")) for cable in CABLES]
    assert [answer.decision.cut_off for answer in answers] == [(), ("a", "b")]
    assert not service.get_verification().mismatches
    answer = service.post_link(LinkRequest(CABLES[0], "up"))
    assert answer.decision.cut_off == () and used(service) > {CABLES[0], "h0n0p0->tor0"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"link": "a", "state": "broken"}, "'state' must be"),
        ({"link": 7, "state": "down"}, "link"),
        ({"state": "down"}, "link"),
        ({"link": "a", "state": "down", "apply": "later"}, "apply"),
        ([], "object"),
    ],
)
def test_a_body_that_is_no_request_is_refused(body: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        link_request_from_json(body)


def test_it_is_a_resource() -> None:
    service = serving()
    route(service, "POST", "/links", lambda: {"link": "tor0->agg0", "state": "down"})
    assert "tor0->agg0" not in used(service)
