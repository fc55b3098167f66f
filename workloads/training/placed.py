"""A training plan on a fabric: what each stage computes and sends, in the order in which it can all happen.

Every operation of a stage is a phase of its GPUs: its compute, beside or after it what its groups exchange between
hosts, then what goes to the next stage, which that one waits for. Gradients go in the background of the last backward
pass; parameters come beside the first forward pass. What stays inside a host is part of the compute: sums of a tensor
group, and what tokens and gradients take over NVLink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from topologies.fabric import Fabric
from topologies.limits import MESSAGES
from workloads.communication.collectives import ALGORITHMS, Message, apart, expand, sent_in_pairs
from workloads.communication.layout import Layout, layout_of
from workloads.communication.nccl_tuner import RankGroup, allreduce_algorithm
from workloads.training.expert_routes import copies_to_hosts
from workloads.training.iteration import Cluster, expert_exchange_s, optimizer_s
from workloads.training.layout import Group
from workloads.training.plan import GRADIENT_BYTES, TrainingPlan
from workloads.training.schedules import Operation, after, before
from workloads.training.timeline import timeline
from workloads.training.traffic import Exchange, exchanges_of_part, passes_of_part, stage_bytes
from workloads.training.work import work_of


@dataclass(frozen=True, slots=True)
class PlacedPhase:
    """As :class:`workloads.job.Phase`; ``awaits`` are places in the list of all phases."""

    compute_s: float
    members: tuple[int, ...]
    collective: str = "none"
    messages: tuple[Message, ...] = ()
    size: float = 0.0
    overlap: float = 0.0
    background: bool = False
    detached: bool = False
    awaits: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()


class TooManyMessagesError(ValueError):
    """An iteration has more messages than it may."""


def placed(
    plan: TrainingPlan, gpus: Sequence[str], fabric: Fabric, channels: int = 1, most_messages: int = MESSAGES
) -> tuple[PlacedPhase, ...]:
    """Return the phases of an iteration of ``plan`` whose rank r is ``gpus[r]``.

    Raises ``ValueError`` if there are not as many GPUs as ranks, or stages share a host, and
    :class:`TooManyMessagesError` as soon as there are more than ``most_messages``.
    """
    if len(gpus) != plan.layout.gpus:
        raise ValueError(f"has {len(gpus)} GPUs, its layout is for {plan.layout.gpus}")
    return _Placing(plan, gpus, fabric, channels, most_messages).phases()


@dataclass
class _Placing:
    """What is known while the phases are made."""

    plan: TrainingPlan
    gpus: Sequence[str]
    fabric: Fabric
    channels: int
    most_messages: int
    made: list[PlacedPhase] = field(default_factory=list)
    sent: dict[tuple[int, Operation], int] = field(default_factory=dict)
    """(stage, operation) -> place of the phase that passes on its result."""

    def __post_init__(self) -> None:
        self.stages = self.plan.layout.stages()
        self._to_gather = list(reversed(self.plan.stage_parts(0)))
        self._placed_groups: dict[tuple[Group, int], list[Layout]] = {}
        self._own_groups: dict[tuple[Group, int], tuple[tuple[int, ...], ...]] = {}
        self._passed_on: dict[tuple[int, int, str], tuple[Message, ...]] = {}
        self._known: dict[tuple[Group, int, str, float], tuple[Message, ...]] = {}
        hosts = [{self.fabric.host_of_gpu[self.gpus[rank]] for rank in ranks} for ranks in self.stages]
        for stage, own in enumerate(hosts):
            for other in range(stage + 1, len(hosts)):
                if shared := own & hosts[other]:
                    what = f"stages {stage} and {other} share host {min(shared)}"
                    raise ValueError(
                        f"{what}, expected hosts of one stage each: tensor x context x data GPUs per stage"
                    )
        self.cluster = Cluster(max(len(self.gpus) // len(set().union(*hosts)), 1), self._nic_rate())

    def _nic_rate(self) -> float:
        """Bit/s per GPU by which the job leaves its hosts."""
        ports = {port for gpu in self.gpus for port in self.fabric.nics[self.fabric.nic_of_gpu[gpu]].ports}
        return sum(self.fabric.uplink(port).capacity for port in ports) / len(self.gpus)

    def phases(self) -> tuple[PlacedPhase, ...]:
        """All of them, in an order in which each comes after what it waits for."""
        if self._least_messages() > self.most_messages:
            raise TooManyMessagesError
        self._gather_first()
        for _, stage, operation, last in self._in_time():
            before_it = len(self.made)
            self._add(stage, operation, last)
            self.most_messages -= sum(len(phase.messages) for phase in self.made[before_it:])
            if self.most_messages < 0:
                raise TooManyMessagesError
        return tuple(self.made)

    def _least_messages(self) -> int:
        """Of an iteration, known before it is played through: those between stages, there and back."""
        if len(self.stages) == 1:
            return 0
        return 2 * (len(self.stages) - 1) * self.plan.microbatches * len(self._between(0, 1, Operation("forward", 0)))

    def _gather_first(self) -> None:
        """Later stages gather their parameters while the first ones compute."""
        for stage in range(1, len(self.stages)):
            for part in self.plan.stage_parts(stage):
                self._append_weights(PlacedPhase(0.0, self.stages[stage]), stage, part, "begin")

    def _in_time(self) -> list[tuple[float, int, Operation, bool]]:
        """Begin, stage, operation, and whether it is the last of its chunk, by the time they begin alone."""
        plan = self.plan
        found = timeline(plan.schedule, len(self.stages), plan.microbatches, self._takes)
        ordered: list[tuple[float, int, Operation, bool]] = []
        last_kind = "weights" if plan.schedule.splits_backward else "backward"
        for stage, (order, begins) in enumerate(zip(found.orders, found.begins, strict=True)):
            lasts = {each.chunk: place for place, each in enumerate(order) if each.kind == last_kind}
            for place, (begin, operation) in enumerate(zip(begins, order, strict=True)):
                ordered.append((begin, stage, operation, lasts[operation.chunk] == place))
        return sorted(ordered, key=lambda each: each[0])

    def _takes(self, stage: int, operation: Operation) -> float:
        return max(1e-9, work_of(self.plan, stage, operation).seconds)

    def _add(self, stage: int, operation: Operation, last: bool) -> None:
        plan, ranks = self.plan, self.stages[stage]
        needed = before(operation, stage, len(self.stages), plan.schedule.chunks, plan.schedule.two_way)
        awaits = (self.sent[needed],) if needed is not None and needed in self.sent and needed[0] != stage else ()
        compute_s = work_of(plan, stage, operation).seconds
        part = self._part(stage, operation)
        beside = [each for each in self._exchanges(part, operation) if self._crosses(each.group, stage)]
        inside_s = 0.0 if self._crosses("expert", stage) else self._inside_s(part, operation)
        messages = tuple(message for each in beside for message in self._messages(each, stage, operation.kind))
        experts = any(each.group == "expert" for each in beside)
        phase = PlacedPhase(compute_s + inside_s, ranks, awaits=awaits)
        if messages:
            # Tokens are waited for, unless a pass the other way computes meanwhile; parameters come beside the compute.
            overlap = 0.0 if experts and not plan.schedule.two_way else 1.0
            phase = replace(
                phase,
                collective=beside[0].collective,
                messages=messages,
                size=sum(each.total for each in beside),
                overlap=overlap,
                groups=self._groups(beside[0].group, stage),
            )
        gathered = self._to_gather.pop() if stage == 0 and self._to_gather else None
        done = gathered is not None and self._append_weights(phase, stage, gathered, "begin")
        if last and self._append_weights(PlacedPhase(0.0, ranks) if done else phase, stage, part, "end"):
            done = True
        if not done:
            self.made.append(phase)
        self._pass_on(stage, operation, phase)
        if last:
            self.made.append(PlacedPhase(optimizer_s(plan, stage) / len(plan.stage_parts(stage)), phase.members))

    def _part(self, stage: int, operation: Operation) -> int:
        down = self.plan.schedule.two_way and operation.chunk == 1
        return self.plan.part(len(self.stages) - 1 - stage if down else stage, operation.chunk)

    def _exchanges(self, part: int, operation: Operation) -> list[Exchange]:
        """What ``operation`` exchanges with its groups, all collectives of a kind and group as one."""
        passes = passes_of_part(self.plan)
        found: dict[tuple[str, Group], Exchange] = {}
        for each in exchanges_of_part(self.plan, part):
            if each.moment == operation.kind and each.group != "tensor":
                key = each.collective, each.group
                size = each.total / passes + (found[key].bytes if key in found else 0.0)
                found[key] = replace(each, bytes=size, times=1)
        return list(found.values())

    def _crosses(self, group: Group, stage: int) -> bool:
        return any(len(layout.shares) > 1 for layout in self._layouts(group, stage))

    def _layouts(self, group: Group, stage: int) -> list[Layout]:
        if (group, stage) not in self._placed_groups:
            found = [
                layout_of([self.gpus[rank] for rank in ranks], self.fabric) for ranks in self._groups(group, stage)
            ]
            self._placed_groups[group, stage] = found
        return self._placed_groups[group, stage]

    def _groups(self, group: Group, stage: int) -> tuple[tuple[int, ...], ...]:
        if (group, stage) not in self._own_groups:
            own, all_groups = set(self.stages[stage]), self.plan.layout.groups(group)
            self._own_groups[group, stage] = tuple(ranks for ranks in all_groups if ranks[0] in own)
        return self._own_groups[group, stage]

    def _inside_s(self, part: int, operation: Operation) -> float:
        """Seconds that tokens take between experts of one host."""
        return 0.0 if operation.kind == "weights" else expert_exchange_s(self.plan, self.cluster, part)

    def _messages(self, exchange: Exchange, stage: int, role: str) -> tuple[Message, ...]:
        """The messages of all groups of a stage; those of one pair of ports go over a connection of each group."""
        key = exchange.group, stage, f"{role}-{exchange.what}-{exchange.collective}", exchange.bytes
        if key not in self._known:
            size = exchange.bytes * self._reached(exchange, stage)
            name = self._algorithm(exchange, stage)
            groups = [expand(name, each, size, channels=self.channels) for each in self._layouts(exchange.group, stage)]
            prefix = "-".join((role, *exchange.what.split(), ""))
            self._known[key] = tuple(apart(groups, prefix))
        return self._known[key]

    def _algorithm(self, exchange: Exchange, stage: int) -> str:
        """How a collective is carried out; NCCL is asked bucket by bucket, of the sizes of Megatron-Core."""
        if exchange.collective != "allreduce" or self.plan.allreduce == "ring":
            return ALGORITHMS.get(exchange.collective, exchange.collective)
        if self.plan.allreduce == "tree":
            return "tree"
        layout = self._layouts(exchange.group, stage)[0]
        bucket = min(exchange.bytes, max(40e6, 1e6 * layout.gpus) * GRADIENT_BYTES[self.plan.gradients])
        rate = self._nic_rate() * layout.gpus / len(layout.shares)
        group = RankGroup(layout.gpus, len(layout.shares), rate, nvls=self.plan.gpu.name != "a100")
        return {"ring": "hierarchical", "tree": "tree"}[allreduce_algorithm(bucket, group)]

    def _reached(self, exchange: Exchange, stage: int) -> float:
        """Share of the bytes between hosts that are sent: a token goes once to each host with experts for it."""
        experts = self.plan.shape.experts
        if exchange.group != "expert" or experts is None:
            return 1.0
        hosts = len(self._layouts("expert", stage)[0].shares)
        return copies_to_hosts(experts, hosts) / (experts.per_token * (hosts - 1) / hosts)

    def _append_weights(self, phase: PlacedPhase, stage: int, part: int, moment: str) -> bool:
        """Add ``phase`` with the parameters of ``part`` beside its compute, or gradients behind it; False if none."""
        found = [
            each
            for each in exchanges_of_part(self.plan, part)
            if each.moment == moment and self._crosses(each.group, stage)
        ]
        if not found:
            return False
        weights = replace(
            phase,
            collective=self._algorithm(found[0], stage),
            messages=tuple(message for each in found for message in self._messages(each, stage, f"{moment}{part}")),
            size=sum(each.total for each in found),
            groups=self._groups(found[0].group, stage),
            overlap=self._hidden(part, moment),
            background=moment == "end" and self.plan.overlap_gradients,
        )
        if phase.messages:  # its own exchange first
            self.made.append(phase)
            weights = replace(weights, compute_s=0.0, overlap=0.0, awaits=())
        self.made.append(weights)
        return True

    def _hidden(self, part: int, moment: str) -> float:
        """How much of a pass the weights of ``part`` may travel beside: gradients leave as layers are through."""
        if not self.plan.overlap_gradients:
            return 0.0
        return 1.0 if moment == "begin" else 1 - 1 / max(1, len(self.plan.layers(part)))

    def _pass_on(self, stage: int, operation: Operation, phase: PlacedPhase) -> None:
        """Send the result to the stage that waits for it, if there is one."""
        schedule = self.plan.schedule
        target = after(operation, stage, len(self.stages), schedule.chunks, schedule.two_way)
        if target is None:
            return
        messages = self._between(stage, target[0], operation)
        self.sent[stage, operation] = len(self.made)
        self.made.append(
            PlacedPhase(
                0.0, phase.members, "point-to-point", messages, stage_bytes(self.plan), detached=True,
                groups=tuple(zip(self.stages[stage], self.stages[target[0]], strict=True)),
            )
        )  # fmt: skip

    def _between(self, stage: int, target: int, operation: Operation) -> tuple[Message, ...]:
        """Every rank's share to its peer; ranks with the same ports send together."""
        role = f"{operation.kind}{operation.chunk}-" if self.plan.schedule.two_way else f"{operation.kind}-"
        key = stage, target, role
        if key not in self._passed_on:
            ranks = zip(self.stages[stage], self.stages[target], strict=True)
            pairs = (layout_of([self.gpus[own], self.gpus[peer]], self.fabric) for own, peer in ranks)
            self._passed_on[key] = sent_in_pairs(pairs, stage_bytes(self.plan), self.channels, role)
        return self._passed_on[key]
