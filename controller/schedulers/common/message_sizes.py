"""Messages of jobs: a transfer of one phase on one flow, which is what PIAS and pFabric count bytes of."""

from __future__ import annotations

from collections.abc import Iterable

from workloads.job import Job


def message_sizes(job: Job) -> tuple[float, ...]:
    """Return the bytes of every message that ``job`` sends in an iteration."""
    return tuple(transfer.bytes for phase in job.phases for transfer in phase.transfers if transfer.bytes > 0)


def senders(jobs: Iterable[Job]) -> dict[str, tuple[float, ...]]:
    """Return job -> sizes of its messages, for the jobs that send."""
    sizes = {job.name: message_sizes(job) for job in jobs}
    return {name: found for name, found in sizes.items() if found}
