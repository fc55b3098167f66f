"""Jobs that are large models in training: the plan that their parallel layout makes, and keys that do not fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from testbed.scenario.document import Location, Problem
from testbed.scenario.jobs.training_keys import KEYS, ParallelSpec
from testbed.scenario.spec import JobEntry
from workloads.imported import goal, msccl
from workloads.imported.files import ALGORITHM, SCHEDULE, SHAPE
from workloads.imported.goal import GoalSchedule
from workloads.training.gpus import GPUS, Gpu
from workloads.training.layer_times import read_layer_times
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Schedule
from workloads.training.shape_files import read_config, shapes
from workloads.training.transformer import Transformer

DEFAULT_ACCELERATOR: Final = "h100"
DEFAULT_SEQUENCE: Final = 4096
DEFAULT_MICROBATCHES: Final = 8
_NOT_BESIDE: Final = ("compute", "communication", "overlap", "flops", "collective", "gradients", "experts")


def has_shape(job: JobEntry) -> bool:
    """Whether the model of ``job`` is a large one, whose shape is known."""
    return job.model in shapes() if isinstance(job.model, str) else SHAPE in job.model.files


def shape_of(job: JobEntry) -> Transformer:
    """Return the shape of its model; :class:`~workloads.imported.errors.WorkloadFileError` for a file that has none."""
    return shapes()[job.model] if isinstance(job.model, str) else read_config(Path(job.model.files[SHAPE]))


def accelerator_of(job: JobEntry) -> Gpu:
    """Return the type of its GPUs."""
    return GPUS[job.accelerator or DEFAULT_ACCELERATOR]


def has_schedule(job: JobEntry) -> bool:
    """Whether the job is a GOAL schedule, or an algorithm of MSCCL."""
    return not isinstance(job.model, str) and bool({SCHEDULE, ALGORITHM} & job.model.files.keys())


def schedule_of(job: JobEntry) -> GoalSchedule | None:
    """Return the operations of every rank, None for another kind of job; ``WorkloadFileError`` for a wrong file."""
    if isinstance(job.model, str) or not has_schedule(job):
        return None
    if job.model.goal is not None:
        return goal.read(Path(job.model.goal))
    return msccl.read(Path(job.model.files[ALGORITHM]), job.model.size or 0.0)


def training_plan(job: JobEntry, gpus: int) -> TrainingPlan | None:
    """Return the plan of ``job`` on ``gpus`` GPUs; None for other jobs.

    Raises ``ValueError`` naming the key that does not fit, and :class:`~workloads.imported.errors.WorkloadFileError`.
    """
    if job.kind == "serving" or not has_shape(job):
        return None
    parallel = job.parallel or ParallelSpec.model_construct()
    plan = TrainingPlan(
        shape=shape_of(job),
        gpu=accelerator_of(job),
        layout=ParallelLayout(
            gpus, parallel.tensor, parallel.pipeline, parallel.context, parallel.expert, parallel.order
        ),
        sequence=job.sequence or DEFAULT_SEQUENCE,
        microbatches=job.microbatches or DEFAULT_MICROBATCHES,
        microbatch=job.microbatch or 1,
        schedule=Schedule() if job.schedule is None else job.schedule.value(),
        sharding=job.sharding or "zero-1",
        precision=job.precision or "bf16",
        recompute=job.recompute or "none",
        attention=job.attention or "fused",
        gradients=job.gradient_precision or "bf16",
        overlap_tensor=bool(job.overlap_tensor),
        allreduce=job.allreduce or "auto",
        layer_times=None if job.layer_times is None else read_layer_times(Path(job.layer_times)),
    )
    if plan.state_bytes > plan.gpu.memory:
        what = f"parameters, gradients and optimizer take {plan.state_bytes / 1e9:.0f} GB of a GPU"
        raise ValueError(f"{what}, expected at most {plan.gpu.memory / 1e9:.0f} GB of {plan.gpu.title}")
    return plan


def training_problems(jobs: Mapping[int, JobEntry], *, managed: bool) -> Iterator[Problem]:
    """Every job whose keys do not fit its model."""
    for index, job in jobs.items():
        if job.kind == "serving":
            continue
        if job.kind == "external" or not has_shape(job):
            for key in KEYS:
                if getattr(job, key) is not None:
                    what = f"job '{job.name}' has {key}, expected a model with a parallel layout, such as llama3-8b"
                    yield Problem(("jobs", index, key), what)
        if job.kind != "external" and (has_shape(job) or has_schedule(job)):
            yield from _planned(index, job, managed)


def _planned(index: int, job: JobEntry, managed: bool) -> Iterator[Problem]:
    """What a job may not have whose iteration follows from a layout or a schedule."""
    source, has = (
        ("its schedule", "a schedule") if has_schedule(job) else ("the model and its layout", "a parallel layout")
    )
    for key in _NOT_BESIDE:
        if getattr(job, key) is not None:
            what = f"job '{job.name}' has {key}, expected none: it follows from {source}"
            yield Problem(("jobs", index, key), what)
    if job.share_gpus_with is not None or managed:
        where: Location = ("jobs", index, "model" if job.share_gpus_with is None else "share_gpus_with")
        yield Problem(where, f"job '{job.name}' has {has}, expected GPUs of its own, and no manager")
