"""An iteration of a training job alone, in closed form but for its pipeline, which is played through.

Collectives between hosts run at the rate of the NICs of their ranks: an allreduce of a group with n ranks on n hosts
puts 2 (n - 1) / n of its bytes on each; where several of its ranks share a host, on all their NICs together. Only what
compute does not hide counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workloads.training.expert_routes import copies_to_hosts
from workloads.training.gpus import NVLINK_SHARE
from workloads.training.layout import Group
from workloads.training.plan import GRADIENT_BYTES, PARAMETER_BYTES, TrainingPlan
from workloads.training.schedules import Operation
from workloads.training.timeline import Timeline, timeline
from workloads.training.traffic import combine_bytes, dispatch_bytes, stage_bytes
from workloads.training.work import Pass, forward_pass, work_of

STEP_BYTES: Final = 28.0
"""Read and written per parameter by a step of Adam in mixed precision: weights and two moments of 4 bytes read and
written, the gradient read, the weights of 2 bytes written."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """``gpus_per_host`` GPUs with NVLink between them; ``nic_rate`` bit/s one way for each GPU between hosts."""

    gpus_per_host: int
    nic_rate: float


@dataclass(frozen=True, slots=True)
class IterationAlone:
    """Seconds of an iteration: the pipeline, then what nothing hides of gradients and parameters, the optimizer."""

    pipeline: Timeline
    gradients_s: float
    optimizer_s: float
    mfu: float
    flops_per_gpu: float
    """FLOP/s that each GPU does in effect, without what is computed again."""

    @property
    def seconds(self) -> float:
        """Of the whole iteration."""
        return self.pipeline.seconds + self.gradients_s + self.optimizer_s


def iteration_alone(plan: TrainingPlan, cluster: Cluster) -> IterationAlone:
    """Return an iteration of ``plan`` on ``cluster`` with nothing beside it."""
    stages = plan.layout.pipeline
    known: dict[tuple[int, str, int], float] = {}

    def takes(stage: int, operation: Operation) -> float:
        key = stage, operation.kind, operation.chunk
        if key not in known:
            known[key] = _operation_s(plan, cluster, stage, operation)
        return known[key]

    passes = 8 * stage_bytes(plan) / _rate(plan, cluster, "pipeline") if stages > 1 else 0.0
    pipeline = timeline(plan.schedule, stages, plan.microbatches, takes, passes)
    gradients_s = max(_exposed_weights_s(plan, cluster, stage) for stage in range(stages))
    step_s = max(optimizer_s(plan, stage) for stage in range(stages))
    seconds = pipeline.seconds + gradients_s + step_s
    per_gpu = plan.flops / seconds / plan.layout.gpus
    return IterationAlone(pipeline, gradients_s, step_s, per_gpu / plan.gpu.bf16, per_gpu)


def _operation_s(plan: TrainingPlan, cluster: Cluster, stage: int, operation: Operation) -> float:
    work = work_of(plan, stage, operation)
    if operation.kind == "weights":
        return work.seconds
    part = plan.part(stage, operation.chunk)
    between_s = expert_exchange_s(plan, cluster, part) + _gathered_s(plan, cluster, part, work)
    if plan.schedule.two_way:  # a pass the other way computes meanwhile
        return max(work.seconds, between_s)
    again = 2 if operation.kind == "backward" and plan.recompute == "full" else 1
    return work.seconds + again * between_s


def expert_exchange_s(plan: TrainingPlan, cluster: Cluster, part: int) -> float:
    """Seconds of the all-to-alls of one pass of a microbatch through ``part``."""
    if plan.layout.expert == 1 or plan.shape.experts is None:
        return 0.0
    layers = sum(plan.shape.has_experts(layer) for layer in plan.layers(part))
    hosts = _hosts_of(plan, cluster, "expert")
    to_hosts = copies_to_hosts(plan.shape.experts, hosts) / plan.shape.experts.per_token
    size = dispatch_bytes(plan) + combine_bytes(plan)
    inside = 1 - 1 / min(plan.layout.expert, cluster.gpus_per_host)
    between_s = 8 * size * to_hosts / cluster.nic_rate
    return layers * max(between_s, 8 * size * inside / (NVLINK_SHARE * plan.gpu.nvlink))


def _gathered_s(plan: TrainingPlan, cluster: Cluster, part: int, work: Pass) -> float:
    """What of gathering the parameters of ``part`` its own work does not hide (ZeRO-3)."""
    if plan.sharding != "zero-3":
        return 0.0
    return max(0.0, _weights_s(plan, cluster, part, PARAMETER_BYTES) - work.seconds)


def _weights_s(plan: TrainingPlan, cluster: Cluster, part: int, element: float) -> float:
    """Seconds of one reduce-scatter or all-gather of the weights of ``part``."""
    seconds = 0.0
    groups: tuple[tuple[Group, float], ...] = (
        ("gradient", plan.dense_parameters(part)),
        ("expert-gradient", plan.expert_parameters(part)),
    )
    for group, parameters in groups:
        seconds += _ring_s(plan, cluster, group, parameters * element)
    return seconds


def _ring_s(plan: TrainingPlan, cluster: Cluster, group: Group, size: float) -> float:
    """Seconds of a reduce-scatter or all-gather of ``size`` bytes: a ring over the NICs of hosts, one over NVLink."""
    ranks, hosts = _ranks_of(plan, group), _hosts_of(plan, cluster, group)
    inside_s = 8 * (ranks - 1) / ranks * size / (NVLINK_SHARE * plan.gpu.nvlink) if ranks > hosts else 0.0
    return max(inside_s, 8 * (hosts - 1) / hosts * size / (cluster.nic_rate * ranks / hosts))


def _exposed_weights_s(plan: TrainingPlan, cluster: Cluster, stage: int) -> float:
    """What of the exchange at the ends of an iteration no pass hides."""
    if plan.sharding == "zero-3":
        return 0.0
    parts = plan.stage_parts(stage)
    scatter_s = sum(_weights_s(plan, cluster, part, GRADIENT_BYTES[plan.gradients]) for part in parts)
    element = PARAMETER_BYTES if plan.sharding in ("zero-1", "zero-2") else GRADIENT_BYTES[plan.gradients]
    gather_s = sum(_weights_s(plan, cluster, part, element) for part in parts)
    if not plan.overlap_gradients:
        return scatter_s + gather_s
    forward = [forward_pass(plan, part).seconds for part in parts]
    layers = max(1, sum(len(plan.layers(part)) for part in parts))
    hidden_s = 2 * sum(forward)
    return max(scatter_s / layers, scatter_s - hidden_s) + max(gather_s / layers, gather_s - sum(forward))


def optimizer_s(plan: TrainingPlan, stage: int) -> float:
    """Seconds of a step of the optimizer on a rank of ``stage``, which its memory bounds."""
    held = 0.0
    for part in plan.stage_parts(stage):
        for parameters, group in (
            (plan.dense_parameters(part), "gradient"),
            (plan.expert_parameters(part), "expert-gradient"),
        ):
            held += parameters / (1 if plan.sharding == "none" else _ranks_of(plan, group))  # type: ignore[arg-type]
    return STEP_BYTES * held / plan.gpu.memory_rate


def _ranks_of(plan: TrainingPlan, group: Group) -> int:
    layout = plan.layout
    sizes = {
        "pipeline": layout.pipeline,
        "expert": layout.expert,
        "gradient": layout.data * layout.context,
        "expert-gradient": layout.data * layout.context // layout.expert,
    }
    return sizes[group]


def _hosts_of(plan: TrainingPlan, cluster: Cluster, group: Group) -> int:
    """Hosts of the first group of a kind, ranks being numbered host by host."""
    return len({rank // cluster.gpus_per_host for rank in plan.layout.groups(group)[0]})


def _rate(plan: TrainingPlan, cluster: Cluster, group: Group) -> float:
    """Bit/s at which a rank sends in groups of a kind: its NIC's, or NVLink where they do not leave a host."""
    return cluster.nic_rate if _hosts_of(plan, cluster, group) > 1 else NVLINK_SHARE * plan.gpu.nvlink
