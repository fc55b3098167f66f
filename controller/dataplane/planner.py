"""What the controller plans: rules on the switches, and the steps of a change from one decision to the next.

Pure: a change is computed as batches of rules, which the caller sends. If the scheduler raises,
nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.dataplane.network import RuleBatch
from controller.dataplane.rules import FlowPlan, FlowRule, GroupRule, RuleBuilder, Update, diff, joined, plans_of
from controller.decider import Decider
from controller.decision import ClusterView, Decision, LinkDown, LinkUp, Measured, Scheduler
from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job
from workloads.plugin_errors import PluginError


class SchedulerFailedError(Exception):
    """The scheduler raised or decided the impossible; the previous decision stays in force."""


@dataclass(frozen=True, slots=True)
class FlowChange:
    """A flow of a running job that is to move: to another path, another level, or both."""

    flow: str
    path_changed: bool
    level_changed: bool


@dataclass(frozen=True)
class PlannedChange:
    """A planned change: the new decision, the running flows it moves, and batches to be confirmed one by one."""

    decision: Decision
    moved: tuple[FlowChange, ...]
    batches: tuple[RuleBatch, ...]


_InForce = tuple[tuple[Path, ...], int | None]
"""Paths (several: the switches choose) and level that the first switch carries out (None: the sender's mark)."""


@dataclass(frozen=True)
class StateBefore:
    """The state before a change, to go back to: the view, and every attribute by name."""

    view: ClusterView
    attributes: Mapping[str, Any]


class ControllerState:
    """The jobs on one fabric and the rules that carry them.

    ``arrive``, ``depart``, ``profiled`` and ``link_changed`` recompute the decision for all jobs. With ``move`` False,
    running flows stay on their old path and level until ``commit`` names them.
    """

    def __init__(
        self, fabric: Fabric, scheduler: Scheduler, levels: int = 8, seed: int = 1, *, spread: bool = False
    ) -> None:
        """``spread``: packets of a flow take all of its paths, whichever is decided."""
        self._scheduler_name = scheduler.name
        self._decider = Decider(fabric, scheduler, levels, seed)
        self._builder = RuleBuilder(fabric, spread=spread)
        self._fabric = fabric
        self._down: tuple[str, ...] = ()
        self._target: dict[str, FlowPlan] = {}
        self._wanted: dict[str, _InForce] = {}
        self._in_force: dict[str, _InForce] = {}
        self._installed: dict[str, Mapping[object, FlowRule]] = {}
        self._carried_out: dict[str, FlowPlan] = {}
        """The plan of flows of which nothing else is installed."""
        self._groups: dict[GroupRule, None] = {}

    @property
    def fabric(self) -> Fabric:
        """The fabric that carries the jobs, with the cables that have failed: port numbers count these."""
        return self._fabric

    @property
    def down(self) -> tuple[str, ...]:
        """Cables that have failed, in that order."""
        return self._down

    @property
    def jobs(self) -> Mapping[str, Job]:
        """The running jobs by name, in order of arrival."""
        return self._decider.view.jobs

    @property
    def decision(self) -> Decision:
        """The last decision."""
        return self._decider.decision

    @property
    def flows(self) -> dict[str, Flow]:
        """Flow id -> flow of all running jobs."""
        return {flow.id: flow for flow in self._decider.view.flows}

    @property
    def pending(self) -> tuple[str, ...]:
        """Flows that wait for ``commit``."""
        return tuple(flow for flow, wanted in self._wanted.items() if self._in_force[flow] != wanted)

    def arrive(self, job: Job, move: bool = True) -> PlannedChange:
        """Add ``job`` and return the change. ``ValueError`` for a name or five-tuple in use, or an unknown port."""
        if job.name in self.jobs:
            raise ValueError(f"a job named '{job.name}' is running")
        self._check(job)
        return self._change(lambda: self._decider.arrive(job), move)

    def reconnected(self, job: Job, move: bool = True) -> PlannedChange:
        """Put ``job`` in the place of the running job of its name, whose connections have changed; return the change.

        Raises as :meth:`arrive` and :meth:`depart` do.
        """
        self._check_runs(job.name)
        self._check(job)
        return self._change(lambda: self._decider.reconnected(job), move)

    def depart(self, name: str, move: bool = True) -> PlannedChange:
        """Remove the job ``name`` and return the change; ``KeyError`` if no such job runs."""
        self._check_runs(name)
        return self._change(lambda: self._decider.depart(name), move)

    def profiled(self, name: str, measured: Measured, move: bool = True) -> PlannedChange:
        """Add the measured profile of the job ``name`` and return the change; ``KeyError`` if no such job runs."""
        self._check_runs(name)
        return self._change(lambda: self._decider.profiled(name, measured), move)

    def link_changed(self, event: LinkDown | LinkUp, move: bool = True) -> PlannedChange:
        """Take cables out of the fabric that the scheduler sees, or put them back, and return the change.

        ``KeyError`` for an unknown link, ``ValueError`` if it is down, or is not, already.
        """
        down = self._down
        for link in (event.link, *event.others):
            if link not in self._fabric.links:
                raise KeyError(f"no link named '{link}'")
            names = {link, self._fabric.links[link].reverse}
            others = tuple(other for other in down if other not in names)
            failed = isinstance(event, LinkDown)
            if failed != (others == down):
                raise ValueError(f"link '{link}' {'is down already' if failed else 'is not down'}")
            down = (*others, link) if failed else others
        change = self._change(lambda: self._decider.links_changed(self._fabric.without(down), event), move)
        self._down = down
        return change

    def throughput_measured(self, shares: Mapping[str, float], move: bool = True) -> PlannedChange:
        """Store recent iterations per second over those alone, decide again, and return the change."""
        return self._change(lambda: self._decider.throughput_measured(shares), move)

    def take_throughput(self, shares: Mapping[str, float]) -> Mapping[str, float]:
        """Store recent iterations per second over those alone; return the stored ones: those of running jobs."""
        return self._decider.take_throughput(shares)

    def commit(self, flows: Sequence[str]) -> tuple[RuleBatch, ...]:
        """Return the batches that bring ``flows`` to their decided path and level; ``ValueError`` if one is unknown."""
        for flow in flows:
            if flow not in self._target:
                raise ValueError(f"no flow named '{flow}'")
        updates = []
        for flow in dict.fromkeys(flows):
            updates.append(self._update_of(flow))
            self._settle(flow)
        update = joined(updates)
        return _batches(
            RuleBatch(),
            RuleBatch(add=update.add_downstream),
            RuleBatch(add=update.moves),
            RuleBatch(delete=update.delete),
        )

    def before(self) -> StateBefore:
        """Return what :meth:`go_back` needs to undo the next change.

        What the dictionaries hold is shared, not copied: a change replaces it and never alters it.
        """
        return StateBefore(self._decider.view, {name: _copy(value) for name, value in vars(self).items()})

    def go_back(self, before: StateBefore, sent: Sequence[RuleBatch]) -> tuple[RuleBatch, ...]:
        """Restore the state ``before`` a change, and return the batches that undo those of it that were ``sent``."""
        self._decider.go_back(before.view)
        for name, value in before.attributes.items():
            setattr(self, name, _copy(value))
        held: dict[object, FlowRule] = {rule.key: rule for rules in self._installed.values() for rule in rules.values()}
        return _batches(*(_undone(batch, held) for batch in reversed(sent)))

    def rules_on(self, switch: str) -> RuleBatch:
        """Return everything that ``switch`` must hold now: for one that comes back with empty tables."""
        rules = tuple(rule for held in self._installed.values() for rule in held.values() if rule.switch == switch)
        return RuleBatch(groups=tuple(group for group in self._groups if group.switch == switch), add=rules)

    def data_rules(self) -> dict[str, tuple[FlowRule, ...]]:
        """Return flow id -> rules that all of its data passes, in that order, for flows that do not move now.

        Those at all switches of its path; at the first and the last where packets are spread.
        """
        moving = set(self.pending)
        return {flow: plan.along for flow, plan in self._target.items() if plan.along and flow not in moving}

    def _check_runs(self, name: str) -> None:
        if name not in self.jobs:
            raise KeyError(f"no job named '{name}'")

    def _check(self, job: Job) -> None:
        known = {flow.id: flow for flow in self.flows.values() if flow.job != job.name}
        tuples = {self._builder.match(flow): flow.id for flow in known.values()}
        for flow in job.flows:
            for port in (flow.source, flow.target):
                if port not in self.fabric.ports:
                    raise ValueError(f"flow '{flow.id}' names port '{port}', which is not in the fabric")
            if flow.id in known:
                raise ValueError(f"a flow named '{flow.id}' is running")
            match = self._builder.match(flow)
            other = tuples.get(match, tuples.get(match.swapped()))
            if other is not None and not (match not in tuples and flow.two_way and known[other].two_way):
                raise ValueError(f"flow '{flow.id}' has the five-tuple of flow '{other}'")
            known[flow.id], tuples[match] = flow, flow.id
        for gpu in job.gpus:
            if gpu not in self.fabric.host_of_gpu:
                raise ValueError(f"job '{job.name}' names GPU '{gpu}', which is not in the fabric")

    def _change(self, decide: Callable[[], Decision], move: bool) -> PlannedChange:
        decision, plans = self._decide(decide)
        flows = self.flows
        gone = [rule for flow in self._target if flow not in flows for rule in self._forget(flow)]
        self._target = plans
        cut_off = self._decider.cut_off
        self._wanted = {
            flow: self._wanted[flow] if flows[flow].job in cut_off else self._wanted_of(plans[flow], decision)
            for flow in plans
        }
        groups = tuple(
            group
            for group in _unique(group for plan in plans.values() for group in plan.groups)
            if group not in self._groups
        )
        self._groups.update(dict.fromkeys(groups))
        moved = tuple(self._moves())
        return PlannedChange(decision, moved, self._steps(groups, gone, move))

    def _decide(self, decide: Callable[[], Decision]) -> tuple[Decision, dict[str, FlowPlan]]:
        """The decision and its rules; where either fails, everything stays as it was."""
        before = self._decider.view
        try:
            decision, view = decide(), self._decider.seen
            known = (self._builder, view.fabric, view.flows, decision, view.level_count, self._target)
            plans = plans_of(*known, addressed=self.flows)
            return decision, {**plans, **self._of_those_cut_off()}
        except PluginError as error:
            self._decider.go_back(before)
            raise SchedulerFailedError(str(error)) from error
        except Exception as error:  # what is built in, too, may raise
            self._decider.go_back(before)
            text = " ".join(str(error).split())
            raise SchedulerFailedError(
                f"scheduler {self._scheduler_name} raised {type(error).__name__}: {text}"
            ) from error

    def _of_those_cut_off(self) -> dict[str, FlowPlan]:
        """Rules of flows that cannot send now: as they were."""
        flows = (flow.id for job in self._decider.cut_off for flow in self.jobs[job].flows)
        return {flow: self._target[flow] for flow in flows if flow in self._target}

    def _wanted_of(self, plan: FlowPlan, decision: Decision) -> _InForce:
        assert plan.made_of is not None
        flow, paths, _ = plan.made_of
        level = None if decision.trusts_sender(flow) else decision.level_of(flow, self._decider.view.level_count - 1)
        return paths, level

    def _forget(self, flow: str) -> Iterable[FlowRule]:
        self._in_force.pop(flow)
        self._carried_out.pop(flow, None)
        return self._installed.pop(flow).values()

    def _moves(self) -> Iterable[FlowChange]:
        for flow, (path, level) in self._wanted.items():
            if flow in self._in_force and self._in_force[flow] != (path, level):
                before = self._in_force[flow]
                yield FlowChange(flow, before[0] != path, before[1] != level)

    def _update_of(self, flow: str) -> Update:
        return diff(tuple(self._installed.get(flow, {}).values()), self._target[flow].rules)

    def _settle(self, flow: str) -> None:
        self._installed[flow] = {rule.key: rule for rule in self._target[flow].rules}
        self._carried_out[flow] = self._target[flow]
        self._in_force[flow] = self._wanted[flow]

    def _steps(self, groups: tuple[GroupRule, ...], gone: Sequence[FlowRule], move: bool) -> tuple[RuleBatch, ...]:
        """Install flows that do not move (new or unchanged ones) at once; move the others step by step."""
        stay, move_on = [Update(delete=tuple(gone))], list[Update]()
        for flow, plan in self._target.items():
            if self._carried_out.get(flow) is plan:
                self._in_force[flow] = self._wanted[flow]
                continue
            update = self._update_of(flow)
            reopened = bool(update.delete) and flow in self._in_force  # it gets another source port, so other rules
            if not update.moves and not reopened:
                stay.append(update)
                self._settle(flow)
            elif move:
                move_on.append(update)
                self._settle(flow)
            else:
                # What it leaves is deleted at the commit.
                move_on.append(Update(add_downstream=update.add_downstream))
                self._carried_out.pop(flow, None)
                added: dict[object, FlowRule] = {rule.key: rule for rule in update.add_downstream}
                self._installed[flow] = {**self._installed[flow], **added}
        still, moving = joined(stay), joined(move_on)
        return _batches(
            RuleBatch(groups, still.add_downstream + moving.add_downstream, still.delete),
            RuleBatch(add=moving.moves),
            RuleBatch(delete=moving.delete),
        )


def _unique(groups: Iterable[GroupRule]) -> tuple[GroupRule, ...]:
    return tuple(dict.fromkeys(groups))


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


def _undone(batch: RuleBatch, held: Mapping[object, FlowRule]) -> RuleBatch:
    """The batch that brings rules touched by ``batch`` back to those ``held`` before it; its groups are not used."""
    return RuleBatch(
        add=tuple(held[rule.key] for rule in (*batch.add, *batch.delete) if rule.key in held),
        delete=tuple(rule for rule in batch.add if rule.key not in held),
    )


def _batches(*batches: RuleBatch) -> tuple[RuleBatch, ...]:
    return tuple(batch for batch in batches if not batch.is_empty)
