"""Jobs of kind ``serving``: their plan, and keys that do not fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from testbed.scenario.document import Location, Problem
from testbed.scenario.jobs import training_keys
from testbed.scenario.jobs.serving_keys import KEYS, PoolSpec
from testbed.scenario.spec import JobEntry
from testbed.scenario.training import accelerator_of, has_shape, shape_of
from workloads.serving.plan import Pool, ServingPlan
from workloads.serving.requests import Arrivals, PoissonArrivals, read_requests

DEFAULT_OUTPUT: Final = 128
DEFAULT_BATCH: Final = 256
_ALSO_TRAINING: Final = ("precision", "accelerator")
_NEVER: Final = (
    *(key for key in training_keys.KEYS if key not in _ALSO_TRAINING),
    "compute", "communication", "overlap", "flops", "collective", "gradients", "experts", "share_gpus_with",
)  # fmt: skip


def serving_plan(job: JobEntry) -> ServingPlan | None:
    """Return the plan of ``job``; None for other kinds of jobs.

    Raises ``ValueError`` naming the key that does not fit, and :class:`~workloads.imported.errors.WorkloadFileError`.
    """
    if job.kind != "serving" or job.requests is None or not has_shape(job):
        return None
    return ServingPlan(
        shape=shape_of(job),
        gpu=accelerator_of(job),
        prefill=_pool(job.prefill),
        decode=_pool(job.decode),
        arrivals=_arrivals(job),
        precision=job.precision or "bf16",
        batch=job.batch or DEFAULT_BATCH,
    )


def _pool(spec: PoolSpec | None) -> Pool:
    return Pool() if spec is None else Pool(spec.instances, spec.tensor)


def _arrivals(job: JobEntry) -> Arrivals:
    asked = job.requests
    assert asked is not None
    if asked.trace is not None:
        return read_requests(Path(asked.trace), asked.count)
    assert asked.rate is not None
    assert asked.prompt is not None
    return PoissonArrivals(asked.rate, asked.prompt, asked.output or DEFAULT_OUTPUT, asked.count)


def serving_problems(jobs: Mapping[int, JobEntry], *, managed: bool, failing: bool) -> Iterator[Problem]:
    """Every job whose keys do not fit its kind; ``managed`` by a cluster manager; ``failing``: something is to fail."""
    for index, job in jobs.items():
        if job.kind != "serving":
            for key in KEYS:
                if getattr(job, key) is not None:
                    what = f"job '{job.name}' has {key}, expected kind: serving beside it"
                    yield Problem(("jobs", index, key), what)
        else:
            yield from _own_problems(index, job, managed=managed, failing=failing)


def _own_problems(index: int, job: JobEntry, *, managed: bool, failing: bool) -> Iterator[Problem]:
    for key in _NEVER:
        if getattr(job, key) is not None:
            yield Problem(("jobs", index, key), f"job '{job.name}' answers requests and has {key}, expected none")
    if not has_shape(job):
        what = f"job '{job.name}' answers requests, expected a large model such as llama3-8b, or {{config: FILE}}"
        yield Problem(("jobs", index, "model"), what)
    if job.requests is None:
        what = f"job '{job.name}' has no requests, expected requests: {{rate: 2, prompt: 4096}} or a trace"
        yield Problem(("jobs", index), what)
    pools = _pool(job.prefill).gpus + _pool(job.decode).gpus
    if job.gpus is not None and job.gpus != pools:
        where: Location = ("jobs", index, "gpus")
        yield Problem(where, f"job '{job.name}' has {job.gpus} GPUs, expected {pools}: those of prefill and decode")
    if managed:
        yield Problem(("jobs", index, "kind"), f"job '{job.name}' answers requests, expected no manager")
    if failing:
        what = f"job '{job.name}' answers requests, expected no failures: it cannot start again in their midst"
        yield Problem(("jobs", index, "kind"), what)
