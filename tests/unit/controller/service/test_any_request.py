"""Whatever a request says, it is answered; if it is refused, the client is at fault and nothing has changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.ryu_compat import hub
from controller.schedulers.registry import create
from controller.service.http_handler import Response
from controller.service.json_codec import encode, parse_json
from controller.service.rest import RestServer
from controller.service.service import Service
from tests.unit.controller.conftest import ring, small

FABRIC = small()
RUNNING = encode(ring("b", FABRIC, [1, 3], first_port=30000))
REQUESTS: dict[tuple[str, str], Any] = {
    ("PUT", "/fabric"): encode(FABRIC),
    ("POST", "/jobs"): {"job": encode(ring("a", FABRIC, [0, 2])), "apply": "now"},
    ("POST", "/profiles"): {"job": "b", "profile": {"flops": 1e12, "communication_s": 0.5, "iteration_s": 2.0}},
    ("POST", "/commit"): {"flows": ["b/0/0"]},
    ("PUT", "/throughput"): {"b": 0.5, "gone": 1.0},
    ("POST", "/verification"): {"counters": {"tor0": {"10.0.1.1:30000 > 10.0.3.1:5000": 7}}},
}
ODD = [
    None,
    True,
    -1,
    0,
    2**62,
    1e308,
    -1e308,
    1e-320,
    70000,
    "",
    "x",
    "../x",
    "\ud800",
    "a\nb",
    [],
    {},
    [[]],
    "h0n0p0",
]


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is in a document: of long lists and objects the first few items."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in list(items)[:12]:
        yield (*place, key)
        yield from places(value, (*place, key))


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """``document`` with up to three values replaced, removed, doubled or renamed."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(places(document)) or [("x",)]))
        holder = document
        for step in way:
            holder = holder[step]
        if not isinstance(holder, list | dict) or not holder:
            continue
        how = draw(st.integers(0, 9))
        if how == 0:
            del holder[last]
        elif how == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        elif how == 1:
            holder[draw(st.sampled_from(["x", "", "a\nb"]))] = holder.pop(last)
        else:
            holder[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return document


def ask(rest: RestServer, method: str, target: str, body: object) -> Response:
    return rest.answer(method, target, lambda: parse_json(json.dumps(body)))


@pytest.mark.parametrize(("method", "target"), REQUESTS)
@pytest.mark.parametrize("scheduler", ["ecmp-switch", "crux"])
@given(data=st.data())
def test_no_request_is_an_internal_error_and_a_refused_one_changes_nothing(
    method: str, target: str, scheduler: str, data: st.DataObject
) -> None:
    service = Service(MemoryNetwork(), create(scheduler))
    rest = RestServer(service, hub.Semaphore(1))
    assert ask(rest, "PUT", "/fabric", encode(FABRIC)).status == 200
    assert ask(rest, "POST", "/jobs", {"job": RUNNING}).status == 200
    before = service.get_state()
    answer = ask(rest, method, target, data.draw(mutated(REQUESTS[method, target])))
    assert answer.status in (200, 400, 404)
    if answer.status != 200:
        assert service.get_state() == before
        assert len(answer.body["error"].splitlines()) == 1
    for route in ("/state", "/rules", "/verification", "/observed-paths"):
        assert rest.answer("GET", route, lambda: None).status == 200
