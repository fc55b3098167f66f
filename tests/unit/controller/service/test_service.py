from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.planner import FlowChange
from controller.dataplane.rules import RuleBuilder, cookie_of, plans_of
from controller.dataplane.ryu_compat import hub
from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.schedulers.registry import create
from controller.service.json_codec import encode, fabric_from_json
from controller.service.messages import (
    Apply,
    CommitAnswer,
    CommitRequest,
    DecisionAnswer,
    JobRequest,
    ObservedPathsAnswer,
    job_request_from_json,
)
from controller.service.rest import Response, RestServer
from controller.service.service import RequestError, Service
from topologies.fabric import Fabric
from topologies.shaping import dscp_of_level
from workloads.job import Flow, Job

RingMaker = Callable[..., Job]


class Wandering(Scheduler):
    """Moves every flow to the next candidate path, and every job one level up, at each event."""

    name: ClassVar[str] = "wandering"
    summary: ClassVar[str] = "for tests"

    def __init__(self) -> None:
        self.calls = 0

    def decide(self, view: ClusterView, event: Event) -> Decision:
        self.calls += 1
        paths = {}
        for flow in view.flows:
            candidates = view.fabric.candidate_paths(flow.source, flow.target)
            paths[flow.id] = candidates[self.calls % len(candidates)]
        return Decision(paths=paths, levels=dict.fromkeys(view.jobs, 7 - self.calls))


class Failing(Scheduler):
    """Raises at the second event."""

    name: ClassVar[str] = "failing"
    summary: ClassVar[str] = "for tests"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        if len(view.jobs) > 1:
            raise ValueError("out of\nideas")
        return Decision()


class Bench:
    """A service on an in-memory network of ``fabric``."""

    def __init__(self, fabric: Fabric, scheduler: Scheduler) -> None:
        self.fabric = fabric
        self.network = MemoryNetwork()
        self.service = Service(self.network, scheduler)
        self.service.put_fabric(fabric_from_json(json.loads(json.dumps(encode(fabric)))))
        self.network.log.clear()

    def post(self, job: Job, apply: Apply = "now") -> DecisionAnswer:
        body = json.loads(json.dumps(encode(JobRequest(job, apply))))
        return self.service.post_job(job_request_from_json(body))

    @property
    def decision(self) -> Decision:
        decision = self.service.get_state().decision
        assert decision is not None
        return decision

    def commit(self, *flows: str) -> CommitAnswer:
        return self.service.post_commit(CommitRequest(flows))

    def way(self, flow: Flow) -> tuple[tuple[str, ...], int]:
        """Links and DSCP of a packet of ``flow`` that reaches its target."""
        match = RuleBuilder(self.fabric).match(flow)
        walk, back = self.network.walk(flow.source, match), self.network.walk(flow.target, match.swapped())
        assert (walk.reached, back.reached) == (flow.target, flow.source)
        return walk.links, walk.packets[0].dscp


@pytest.mark.parametrize("scheduler", ["crux", "ecmp", "ecmp-switch"])
def test_a_posted_job_is_carried_and_a_deleted_one_leaves_nothing(
    any_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]], scheduler: str
) -> None:
    bench = Bench(any_fabric, create(scheduler))
    jobs = make_mix(any_fabric)
    for job in jobs:
        answer = bench.post(job)
        assert answer.confirmed
    for flow in (flow for job in jobs for flow in job.flows):
        links, _ = bench.way(flow)
        assert answer.decision.paths.get(flow.id, links) == links
    for job in jobs:
        bench.service.delete_job(job.name)
    assert bench.network.read() == []


def test_an_answer_lists_the_running_flows_that_moved(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, Wandering())
    assert bench.post(make_ring("a", small_fabric, [0, 2])).changes == ()
    answer = bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000))
    assert answer.changes == tuple(
        FlowChange(flow, path_changed=True, level_changed=True) for flow in ("a/0/0", "a/0/1")
    )


def test_a_flow_that_keeps_its_path_and_level_is_not_touched(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    bench.post(make_ring("a", small_fabric, [0, 2]))
    bench.network.log.clear()
    assert bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000)).changes == ()
    (batch,) = bench.network.log
    assert {rule.match.source for rule in batch.add} == {"10.0.1.1", "10.0.3.1"}
    assert not batch.delete


def test_now_moves_running_flows_make_before_break(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, Wandering()), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    before = bench.way(job.flows[0])
    bench.network.log.clear()
    bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000), "now")
    added, flipped, deleted = bench.network.log
    running = {cookie_of(flow.id) for flow in job.flows}
    assert not any(rule.is_first for rule in added.add if rule.cookie in running)
    assert {rule.cookie for rule in added.add} > running
    assert all(rule.is_first for rule in flipped.add)
    assert deleted.delete and not deleted.add
    assert bench.way(job.flows[0]) != before


def test_prepare_leaves_running_flows_alone_until_their_commit(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, Wandering()), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    before = [bench.way(flow) for flow in job.flows]
    newcomer = make_ring("b", small_fabric, [1, 3], first_port=30000)
    answer = bench.post(newcomer, "prepare")
    assert [bench.way(flow) for flow in job.flows] == before
    assert bench.way(newcomer.flows[0])[0] == answer.decision.paths["b/0/0"]
    assert bench.service.get_state().pending == ("a/0/0", "a/0/1")

    assert bench.commit("a/0/0").confirmed
    links, dscp = bench.way(job.flows[0])
    assert links == answer.decision.paths["a/0/0"]
    assert dscp == dscp_of_level(5)
    assert bench.way(job.flows[1]) == before[1]
    assert bench.service.get_state().pending == ("a/0/1",)


def test_after_all_commits_the_switches_hold_exactly_the_decision(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, Wandering())
    jobs = [make_ring(f"j{index}", small_fabric, [0, 2], first_port=20000 + 100 * index) for index in range(3)]
    for job in jobs:
        bench.post(job, "prepare")
    bench.service.delete_job("j1", "prepare")
    bench.commit(*bench.service.get_state().pending)
    flows = [flow for job in (jobs[0], jobs[2]) for flow in job.flows]
    plans = plans_of(RuleBuilder(small_fabric), small_fabric, flows, bench.decision, levels=8)
    assert {count.rule for count in bench.network.read()} == {rule for plan in plans.values() for rule in plan.rules}
    assert bench.service.get_state().pending == ()


def test_a_decision_taken_back_before_its_commit_moves_nothing(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, Wandering()), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    before = bench.way(job.flows[0])[0]
    bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000), "prepare")
    answer = bench.service.delete_job("b", "prepare")
    assert all(not change.path_changed and change.level_changed for change in answer.changes)
    assert bench.way(job.flows[0])[0] == before


def test_a_commit_twice_does_nothing_the_second_time(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, Wandering())
    bench.post(make_ring("a", small_fabric, [0, 2]))
    bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000), "prepare")
    bench.commit("a/0/0", "a/0/0")
    bench.network.log.clear()
    bench.commit("a/0/0")
    assert bench.network.log == []


def test_a_switch_that_comes_back_gets_what_it_must_hold(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, create("ecmp-switch")), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    for switch in small_fabric.switches:
        bench.network.tables[switch].entries.clear()
        bench.network.tables[switch].groups.clear()
        bench.network.apply(bench.service.rules_on(switch))
    assert bench.way(job.flows[0])[1] == 0


def test_a_scheduler_that_raises_leaves_the_previous_decision_in_force(
    small_fabric: Fabric, make_ring: RingMaker
) -> None:
    bench, job = Bench(small_fabric, Failing()), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    before = bench.service.get_state()
    with pytest.raises(RequestError, match=r"^scheduler failing raised ValueError: out of ideas$") as caught:
        bench.post(make_ring("b", small_fabric, [1, 3], first_port=30000))
    assert caught.value.status == 500
    assert bench.service.get_state() == before
    bench.way(job.flows[0])


def test_what_the_switches_hold_can_be_read_with_packet_counts(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, create("ecmp")), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    bench.way(job.flows[0])
    rules = bench.service.get_rules().rules
    assert len(rules["tor0"]) == 4
    assert sum(rule.packets for rule in rules["tor0"]) == 2


def test_the_way_that_switches_chose_is_read_back(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench, job = Bench(small_fabric, create("ecmp-switch")), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    links, _ = bench.way(job.flows[0])
    assert bench.service.get_observed_paths() == ObservedPathsAnswer({"a/0/0": links, "a/0/1": None})


def ask(bench: Bench, method: str, target: str, body: object = None) -> Response:
    return RestServer(bench.service, hub.Semaphore(1)).answer(method, target, lambda: body)


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "message"),
    [
        ("GET", "/nothing", None, 404, "no resource GET /nothing"),
        ("POST", "/jobs", [], 400, "the body must be a JSON object"),
        ("POST", "/jobs", {}, 400, "job: expected an object, not null"),
        ("POST", "/jobs", {"jobs": 1}, 400, "unknown key 'jobs', expected apply, job"),
        ("POST", "/jobs", {"job": {}, "apply": "later"}, 400, "apply must be now or prepare, not 'later'"),
        ("DELETE", "/jobs/none", None, 404, "no job named 'none'"),
        ("DELETE", "/jobs/none?apply=soon", None, 400, "apply must be now or prepare, not 'soon'"),
        ("POST", "/commit", {"flows": ["x"]}, 404, "no flow named 'x'"),
        ("POST", "/commit", {"flows": "x"}, 400, "'flows' must be an array of flow ids"),
        ("PUT", "/fabric", {"name": 1}, 400, "fabric: key 'hosts' is missing"),
        ("PUT", "/switches", {}, 400, "switches: expected an array, not an object"),
        ("PUT", "/switches", ["tor9"], 400, "unknown switch 'tor9', expected switches of fabric 'clos'"),
    ],
)
def test_a_bad_request_is_answered_with_one_line(
    small_fabric: Fabric, method: str, target: str, body: object, status: int, message: str
) -> None:
    assert ask(Bench(small_fabric, create("ecmp")), method, target, body) == Response(status, {"error": message}, {})


@pytest.mark.parametrize(("old", "new"), [("/check", "/verification"), ("/taken", "/observed-paths")])
def test_a_renamed_route_is_answered_and_says_its_new_name(
    small_fabric: Fabric, make_ring: RingMaker, caplog: pytest.LogCaptureFixture, old: str, new: str
) -> None:
    bench, job = Bench(small_fabric, create("ecmp-switch")), make_ring("a", small_fabric, [0, 2])
    bench.post(job)
    bench.way(job.flows[0])
    rest = RestServer(bench.service, hub.Semaphore(1))
    answers = [rest.answer("GET", route, lambda: None) for route in (old, new, old + "/")]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [answer.headers.get("Deprecation") for answer in answers] == ["true", None, "true"]
    assert answers[0].headers["Link"] == f'<{new}>; rel="successor-version"'
    assert [record.getMessage() for record in caplog.records] == [f"the route {old} is deprecated: ask {new}"]
    renamed = {"taken": "paths"}
    assert {renamed.get(key, key): value for key, value in answers[0].body.items()} == answers[1].body


def test_each_route_of_observed_paths_answers_under_its_own_key(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp-switch"))
    bench.post(make_ring("a", small_fabric, [0, 2]))
    paths = {"a/0/0": None, "a/0/1": None}
    assert ask(bench, "GET", "/taken").body == {"taken": paths}
    assert ask(bench, "GET", "/observed-paths").body == {"paths": paths}


def test_requests_before_a_fabric_are_refused(small_fabric: Fabric, make_ring: RingMaker) -> None:
    service = Service(MemoryNetwork(), create("ecmp"))
    with pytest.raises(RequestError, match="no fabric yet: PUT /fabric first"):
        service.post_job(JobRequest(make_ring("a", small_fabric, [0, 2])))


def test_a_job_on_unknown_ports_is_refused(small_fabric: Fabric, clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    with pytest.raises(RequestError, match="names port 'h9n0p0', which is not in the fabric"):
        Bench(small_fabric, create("ecmp")).post(make_ring("a", clos96_fabric, [9, 10]))


def test_two_flows_with_one_five_tuple_are_refused(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    bench.post(make_ring("a", small_fabric, [0, 2]))
    with pytest.raises(RequestError, match="flow 'b/0/0' has the five-tuple of flow 'a/0/0'"):
        bench.post(make_ring("b", small_fabric, [0, 2]))


def test_a_job_name_in_use_is_refused(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    bench.post(make_ring("a", small_fabric, [0, 2]))
    with pytest.raises(RequestError, match="a job named 'a' is running"):
        bench.post(make_ring("a", small_fabric, [1, 3], first_port=30000))


@pytest.mark.parametrize("name", ["a b", "a/b", "1", "a--b", "a.b", "<i>", "a@", "a@x", "a\n"])
def test_a_job_is_called_as_in_a_scenario_file(small_fabric: Fabric, make_ring: RingMaker, name: str) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    body = {"job": encode(make_ring(name, small_fabric, [0, 2]))}
    answer = ask(bench, "POST", "/jobs", body)
    assert answer.status == 400 and answer.body["error"].startswith("job.name")
    assert ask(bench, "GET", "/state").body["jobs"] == []


@pytest.mark.parametrize("name", ["a", "gpt-0", "Gpt_1", "gpt-0@2"])
def test_a_job_of_a_scenario_and_its_next_stretch_have_names_that_are_taken(
    small_fabric: Fabric, make_ring: RingMaker, name: str
) -> None:
    body = {"job": encode(make_ring(name, small_fabric, [0, 2]))}
    assert ask(Bench(small_fabric, create("ecmp")), "POST", "/jobs", body).status == 200


def test_nothing_is_decided_while_a_switch_is_away(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    bench.network.away.add("agg1")
    with pytest.raises(RequestError, match="switches not connected: agg1"):
        bench.post(make_ring("a", small_fabric, [0, 2]))
    assert bench.service.get_state().jobs == ()


def test_of_switches_that_are_not_built_nothing_is_expected(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    tors = {small_fabric.ports[port].switch for port in small_fabric.ports}
    built = sorted(tors | {"agg0"})
    assert ask(bench, "PUT", "/switches", built).status == 200
    state = bench.service.get_state()
    assert sorted(state.switches) == built and state.expected == len(built)
    assert sorted(bench.service.get_rules().rules) == built
    assert bench.service.get_verification().mismatches == ()


def test_a_new_fabric_expects_all_of_its_switches(small_fabric: Fabric) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    ask(bench, "PUT", "/switches", ["tor0"])
    bench.service.put_fabric(small_fabric)
    assert sorted(bench.service.get_state().switches) == sorted(small_fabric.switches)


def test_a_job_that_needs_a_switch_that_is_not_built_is_refused(small_fabric: Fabric, make_ring: RingMaker) -> None:
    bench = Bench(small_fabric, create("ecmp"))
    ask(bench, "PUT", "/switches", ["tor0"])
    with pytest.raises(RequestError, match="not connected"):
        bench.post(make_ring("a", small_fabric, [0, 2]))
    assert bench.service.get_state().jobs == ()
