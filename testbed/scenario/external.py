"""Jobs of kind ``external``: what only they may have, and what they may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from testbed.scenario.document import Problem
from testbed.scenario.spec import JobEntry
from workloads.external import VARIABLES, ExternalCommand, check_variables

_ONLY_EXTERNAL: Final = ("command", "environment", "processes", "progress", "start_limit")
_NEVER_EXTERNAL: Final = ("model", "gradients", "experts", "stragglers", "jitter", "channels", "share_gpus_with")
_DEFAULT_START_S: Final = 60.0


def external_command(job: JobEntry) -> ExternalCommand | None:
    """Return the program that is the job; None for a synthetic one."""
    if job.kind != "external" or job.command is None:
        return None
    return ExternalCommand(
        command=job.command,
        environment=job.environment or {},
        processes=job.processes or 1,
        progress=job.progress or "client",
        start_limit_s=job.start_limit or _DEFAULT_START_S,
        communication=job.communication,
        compute_s=job.compute,
    )


def external_problems(jobs: Mapping[int, JobEntry], *, managed: bool, dilated: bool) -> Iterator[Problem]:
    """Every job whose keys do not fit its kind, and external ones where none can be.

    ``managed``: a manager places the jobs. ``dilated``: the scenario sets a dilation other than 1.
    """
    for index, job in jobs.items():
        if job.kind != "external":
            for key in _ONLY_EXTERNAL:
                if getattr(job, key) is not None:
                    yield Problem(
                        ("jobs", index, key), f"job '{job.name}' has {key}, expected kind: external beside it"
                    )
            continue
        yield from _own_keys(index, job)
        if managed:
            message = f"job '{job.name}' is a real program, expected no manager: it cannot be stopped and moved"
            yield Problem(("jobs", index, "kind"), message)
        if dilated:
            message = f"job '{job.name}' is a real program, which takes its own time: expected scale.time 1"
            yield Problem(("jobs", index, "kind"), message)


def _own_keys(index: int, job: JobEntry) -> Iterator[Problem]:
    for key in _NEVER_EXTERNAL:
        if getattr(job, key):
            yield Problem(("jobs", index, key), f"job '{job.name}' is a real program and has {key}, expected none")
    if job.command is None:
        yield Problem(("jobs", index), f"missing key 'command' in jobs.{index}, expected what an external job runs")
    if job.flops is None:
        message = f"missing key 'flops' in jobs.{index}, expected the work of one iteration on one GPU, such as 3TFLOP"
        yield Problem(("jobs", index), message)
    for name, text in (job.environment or {}).items():
        try:
            check_variables([text])
        except ValueError as error:
            yield Problem(("jobs", index, "environment", name), str(error))
    texts = [*(job.command or ()), *(job.environment or {}).values()]
    if job.communication is None and any("{bytes}" in text for text in texts):
        message = (
            f"job '{job.name}' has {{bytes}} in its command, expected communication beside it: {VARIABLES['bytes']}"
        )
        yield Problem(("jobs", index, "command"), message)
