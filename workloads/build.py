"""From what a scenario says about jobs to :class:`~workloads.job.Job` values, placed and expanded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topologies.fabric import Fabric
from topologies.input.spelling import expectation
from topologies.limits import CHANNELS, MESSAGES
from workloads.communication.collectives import COLLECTIVES, Channel, Message, expand, returned
from workloads.communication.experts import Experts, forward_pass
from workloads.communication.gradients import AS_IN_THE_CATALOGUE, Gradients, exchanged
from workloads.communication.intra_host import LinkBytes, inside_bytes
from workloads.communication.layout import Layout, layout_of
from workloads.communication.ralp import exchanged_share
from workloads.connections import PortBook
from workloads.errors import JobError
from workloads.external import MODEL, UNKNOWN_BYTES, ExternalCommand
from workloads.job import Flow, Job, Phase, Straggler, Transfer
from workloads.models.catalogue import CATALOGUE, LAYERS
from workloads.models.model import A100_PEAK, Model, PhaseTemplate
from workloads.placement import GpuRequest, place

__all__ = ["DEFAULT_ITERATIONS", "MAX_JITTER", "JobError", "JobSpec", "build_job", "build_jobs", "check_job"]

DEFAULT_ITERATIONS = 1000
MAX_JITTER = 0.3
"""Three standard deviations, where compute times are cut off, must stay above zero."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job as asked for; what is None comes from the model or the placement policy.

    ``compute_s`` is one iteration on one GPU, ``flops`` its FLOPs; either alone sets the other by
    the model's FLOP/s. ``communication_bytes`` is S per GPU, all collectives of an iteration added
    up; ``overlap`` holds for every phase, ``collective`` for all but the model's all-to-alls (for
    those too where the model has nothing else). With ``gradients`` exchanged every n iterations, n of them are one
    iteration of the job. ``experts``: how those of a mixture are placed and loaded; None for all alike.
    A job that is ``share_gpus_with`` another has that one's GPUs. ``channels``: connections per pair of ports.
    ``external``: the real program that is the job; its flows here are those of a declared ring, to plan with.
    """

    name: str
    model: str
    gpus: int | None = None
    placement: tuple[str, ...] | None = None
    start_s: float = 0.0
    iterations: int = DEFAULT_ITERATIONS
    compute_s: float | None = None
    communication_bytes: float | None = None
    overlap: float | None = None
    flops: float | None = None
    collective: str | None = None
    jitter: float = 0.0
    stragglers: tuple[Straggler, ...] = ()
    gradients: Gradients = AS_IN_THE_CATALOGUE
    experts: Experts | None = None
    share_gpus_with: str | None = None
    channels: int = 1
    external: ExternalCommand | None = None


def build_jobs(specs: Sequence[JobSpec], fabric: Fabric, policy: str = "first-free", seed: int = 1) -> tuple[Job, ...]:
    """Return the jobs in the order of ``specs``, placed by ``policy`` and with TCP ports drawn from ``seed``.

    Raises :class:`JobError` for the first job that cannot be built and ``ValueError`` for an unknown policy.
    """
    counts = Counter(spec.name for spec in specs)
    for spec in specs:
        if counts[spec.name] > 1:
            raise JobError(spec.name, "two jobs have this name")
        check_job(spec)
    gpus = place([_request(spec) for spec in specs if spec.share_gpus_with is None], fabric, policy)
    ports = PortBook(seed)
    jobs: list[Job] = []
    left = MESSAGES
    for spec in specs:
        jobs.append(_build(spec, _gpus_of(spec, gpus), fabric, ports, left))
        left -= sum(len(phase.transfers) for phase in jobs[-1].phases)
    return tuple(jobs)


def build_job(spec: JobSpec, gpus: Sequence[str], fabric: Fabric, ports: PortBook) -> Job:
    """Return the job on ``gpus``, regardless of the placement in its spec; its TCP ports are new in ``ports``.

    Raises :class:`JobError` as :func:`build_jobs` does.
    """
    check_job(spec)
    return _build(spec, tuple(gpus), fabric, ports)


def check_job(spec: JobSpec) -> None:
    """Raise :class:`JobError` if the job cannot be built, wherever it is placed."""
    of_experts = None if spec.experts is None else spec.experts.problem()
    rules = (
        (bool(spec.name) and ":" not in spec.name, "a job needs a name without ':'"),
        (
            spec.model in CATALOGUE or spec.external is not None,
            f"unknown model '{spec.model}'{_suggestion(spec.model)}",
        ),
        (
            spec.collective is None or spec.collective in COLLECTIVES,
            f"unknown collective '{spec.collective}', expected one of: {', '.join(COLLECTIVES)}",
        ),
        (_at_least(spec.start_s, 0), f"start must be 0 s or later, not {spec.start_s:g} s"),
        (spec.iterations >= 1, f"iterations must be at least 1, not {spec.iterations}"),
        (_positive(spec.compute_s), "compute must be longer than 0 s"),
        (_positive(spec.flops), "flops must be more than 0"),
        (
            spec.communication_bytes is None or _at_least(spec.communication_bytes, 0),
            "communication must be 0 bytes or more",
        ),
        (spec.overlap is None or 0 <= spec.overlap <= 1, "overlap must lie between 0 and 1"),
        (1 <= spec.channels <= CHANNELS, f"channels must be 1 to {CHANNELS}, not {spec.channels}"),
        (0 <= spec.jitter <= MAX_JITTER, f"jitter must lie between 0 and {MAX_JITTER:g}"),
        (spec.gradients.problem() is None, str(spec.gradients.problem())),
        (
            not spec.gradients.background or spec.model not in CATALOGUE or _has_all_to_alls(spec.model),
            f"gradients.background needs all-to-alls to go on beside, model '{spec.model}' has none",
        ),
        (
            not spec.gradients.ralp or spec.model not in CATALOGUE or spec.model in LAYERS,
            f"gradients.ralp needs a convolutional network, model '{spec.model}' is none",
        ),
        (
            spec.experts is None or spec.model not in CATALOGUE or CATALOGUE[spec.model].expert_share > 0,
            f"experts needs a mixture of experts, model '{spec.model}' is none",
        ),
        (of_experts is None, str(of_experts)),
    )
    for holds, message in rules:
        if not holds:
            raise JobError(spec.name, message)


def _has_all_to_alls(model: str) -> bool:
    return any(phase.collective == "alltoall" for phase in CATALOGUE[model].phases)


def _at_least(value: float, least: float) -> bool:
    return math.isfinite(value) and value >= least


def _positive(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and value > 0)


def _suggestion(model: str) -> str:
    if model in CATALOGUE:
        return ""
    return f", {expectation(model, CATALOGUE)}"


def _gpus_of(spec: JobSpec, placed: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Its own GPUs, or those that it shares."""
    if spec.share_gpus_with is None:
        return placed[spec.name]
    if spec.share_gpus_with not in placed:
        raise JobError(spec.name, f"no job '{spec.share_gpus_with}' with GPUs of its own to be packed with")
    return placed[spec.share_gpus_with]


def _request(spec: JobSpec) -> GpuRequest:
    if spec.placement is None:
        if spec.gpus is None:
            raise JobError(spec.name, "needs 'gpus' or 'placement'")
        if spec.gpus < 1:
            raise JobError(spec.name, f"gpus must be at least 1, not {spec.gpus}")
        return GpuRequest(spec.name, spec.gpus)
    if not spec.placement:
        raise JobError(spec.name, "its placement is empty")
    if spec.gpus not in (None, len(spec.placement)):
        raise JobError(spec.name, f"asks for {spec.gpus} GPUs, its placement names {len(spec.placement)}")
    return GpuRequest(spec.name, len(spec.placement), spec.placement)


def _build(spec: JobSpec, gpus: tuple[str, ...], fabric: Fabric, ports: PortBook, most_messages: int = MESSAGES) -> Job:
    own = frozenset(gpus) if spec.stragglers else frozenset()
    for straggler in spec.stragglers:
        if straggler.gpu not in own:
            raise JobError(spec.name, f"straggler '{straggler.gpu}' is not one of its GPUs")
        if not _positive(straggler.factor):
            raise JobError(spec.name, f"straggler '{straggler.gpu}' needs a factor above 0")
    model = CATALOGUE[spec.model] if spec.external is None else _declared(spec)
    if spec.experts is not None and spec.experts.inference:
        model = forward_pass(model)
    every = spec.gradients.every
    compute, flops = (every * amount for amount in _work(spec, model))
    tokens = () if spec.experts is None else spec.experts.tokens(len(gpus))
    layout = layout_of(gpus, fabric, tokens)
    templates = exchanged(_templates(spec, model), spec.gradients)
    expanded = _expanded(spec, templates, layout, most_messages)
    flows = _flows(spec.name, [message for _, messages in expanded for message in messages], ports)
    return Job(
        name=spec.name,
        model=model.name,
        gpus=gpus,
        phases=tuple(
            _phase(spec.name, template, messages, compute, inside_bytes(layout, template, messages))
            for template, messages in expanded
        ),
        flows=flows,
        flops=flops * len(gpus),
        iterations=math.ceil(spec.iterations / every),
        start_s=spec.start_s,
        jitter=spec.jitter,
        stragglers=_stragglers(spec, model, gpus, tokens),
        external=spec.external,
    )


def _declared(spec: JobSpec) -> Model:
    """What a real program says of itself, as a model: compute, then one collective."""
    size = UNKNOWN_BYTES if spec.communication_bytes is None else spec.communication_bytes
    return Model(
        name=MODEL,
        title="a real program",
        parameters=0.0,
        flops_per_gpu=spec.flops or 0.0,
        gradient_bytes=size,
        achieved_flops=A100_PEAK,
        batch=0.0,
        layout="",
        phases=(PhaseTemplate(1.0, spec.collective or "ring", size, spec.overlap or 0.0),),
        sources=(),
    )


def _expanded(
    spec: JobSpec, templates: Sequence[PhaseTemplate], layout: Layout, most: int
) -> list[tuple[PhaseTemplate, tuple[Message, ...]]]:
    """Each template with its messages; :class:`JobError` if they are more than ``most`` together."""
    found: list[tuple[PhaseTemplate, tuple[Message, ...]]] = []
    left = most
    for template in templates:
        messages = expand(template.collective, layout, template.bytes, channels=spec.channels, most=left + 1)
        left -= len(messages)
        if left < 0:
            raise JobError(spec.name, f"too many messages, expected at most {MESSAGES} in an iteration of all jobs")
        found.append((template, returned(messages) if template.returning else messages))
    return found


def _stragglers(spec: JobSpec, model: Model, gpus: Sequence[str], tokens: Sequence[float]) -> tuple[Straggler, ...]:
    """The job's own, and GPUs whose experts get more or fewer tokens than the mean."""
    factors = {
        gpu: 1.0 + model.expert_share * (len(gpus) * share - 1.0) for gpu, share in zip(gpus, tokens, strict=False)
    }
    for straggler in spec.stragglers:
        factors[straggler.gpu] = factors.get(straggler.gpu, 1.0) * straggler.factor
    return tuple(Straggler(gpu, factor) for gpu, factor in factors.items() if abs(factor - 1.0) > 1e-9)


def _work(spec: JobSpec, model: Model) -> tuple[float, float]:
    """Compute in s and FLOPs of one GPU's iteration."""
    flops = spec.flops
    if flops is None:
        flops = model.flops_per_gpu if spec.compute_s is None else spec.compute_s * model.achieved_flops
    return spec.compute_s if spec.compute_s is not None else flops / model.achieved_flops, flops


def _templates(spec: JobSpec, model: Model) -> tuple[PhaseTemplate, ...]:
    """The model's phases with what the job overrides."""
    scale = 1.0 if spec.communication_bytes is None else spec.communication_bytes / model.communication_bytes
    if spec.gradients.ralp:
        scale *= exchanged_share(LAYERS[spec.model], model.batch)
    only_alltoall = all(phase.collective == "alltoall" for phase in model.phases)
    return tuple(
        replace(
            phase,
            collective=spec.collective
            if spec.collective and (only_alltoall or phase.collective != "alltoall")
            else phase.collective,
            bytes=phase.bytes * scale,
            overlap=phase.overlap if spec.overlap is None else spec.overlap,
        )
        for phase in model.phases
    )


def _phase(
    job: str, template: PhaseTemplate, messages: Sequence[Message], compute_s: float, inside: LinkBytes
) -> Phase:
    transfers = tuple(
        Transfer(
            message.channel.flow_id(job),
            message.bytes,
            message.after.flow_id(job) if message.after else None,
            message.lead,
        )
        for message in messages
    )
    return Phase(
        template.share * compute_s, template.overlap, template.collective, transfers, inside, template.background
    )


def _flows(job: str, messages: Sequence[Message], ports: PortBook) -> tuple[Flow, ...]:
    """One flow per channel, its bytes those of all phases; in order of first use."""
    sizes: dict[Channel, float] = {}
    for message in messages:
        sizes[message.channel] = sizes.get(message.channel, 0.0) + message.bytes
    return tuple(_flow(job, channel, size, ports) for channel, size in sizes.items())


def _flow(job: str, channel: Channel, size: float, ports: PortBook) -> Flow:
    identity = channel.flow_id(job)
    try:
        source_port, target_port = ports.source_port(identity, channel.source), ports.target_port(channel.target)
    except ValueError as error:
        raise JobError(job, str(error)) from None
    return Flow(identity, job, channel.source, channel.target, size, source_port, target_port)
