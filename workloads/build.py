"""From what a scenario says about jobs to :class:`~workloads.job.Job` values, placed and expanded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topologies.fabric import Fabric
from topologies.input.spelling import expectation
from topologies.limits import CHANNELS, MESSAGES
from workloads.communication.collectives import COLLECTIVES, Message, expand, returned
from workloads.communication.experts import Experts, forward_pass, pipelined
from workloads.communication.gradients import AS_IN_THE_CATALOGUE, Gradients, exchanged
from workloads.communication.intra_host import inside_bytes
from workloads.communication.layout import Layout, layout_of
from workloads.communication.ralp import exchanged_share
from workloads.connections import PortBook
from workloads.errors import JobError, is_job_name
from workloads.external import MODEL, UNKNOWN_BYTES, ExternalCommand
from workloads.imported.expansion import PHASES, OnFabric, expanded
from workloads.imported.workload import ImportedWorkload
from workloads.job import Job, Phase, Straggler
from workloads.models.catalogue import CATALOGUE, LAYERS, TRANSFORMER_FLOPS
from workloads.models.model import A100_PEAK, Model, PhaseTemplate
from workloads.phases import flows_of, phase_of
from workloads.placement import GpuRequest, place
from workloads.serving.plan import ServingPlan
from workloads.serving.rounds import rounds_of
from workloads.training.stages import StagedPlan, stages_of

__all__ = ["DEFAULT_ITERATIONS", "MAX_JITTER", "JobError", "JobSpec", "build_job", "build_jobs", "check_job"]

DEFAULT_ITERATIONS = 1000
MAX_JITTER = 0.3
"""Three standard deviations, where compute times are cut off, must stay above zero."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job as asked for; what is None comes from the model or the placement policy.

    ``compute_s`` is one iteration on one GPU, ``flops`` its FLOPs; either alone sets the other by the model's FLOP/s.
    ``communication_bytes`` is S per GPU, all collectives of an iteration added up; ``overlap`` holds for every phase,
    ``collective`` for all but the model's all-to-alls (for those too where the model has nothing else). With
    ``gradients`` exchanged every n iterations, n of them are one iteration of the job. ``experts``: how those of a
    mixture are placed and loaded; None for all alike. A job that is ``share_gpus_with`` another has that one's GPUs.
    ``channels``: connections per pair of ports. ``workload``: its iteration, read from a file, in about ``phases``
    phases at most; ``plan``: its parallel layout or its pools; with either, ``model`` only names it. ``external``: the
    real program that is the job; its flows here are those of a declared ring, to plan with.
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
    workload: ImportedWorkload | None = None
    phases: int = PHASES
    external: ExternalCommand | None = None
    plan: StagedPlan | ServingPlan | None = None


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
    ports = PortBook(seed, fabric)
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


def build_job_of(model: Model, spec: JobSpec, fabric: Fabric) -> Job:
    """Return the job of ``spec`` on its ``placement`` for a ``model`` that need not be the catalogue's.

    ``spec.model`` names the model that it is made of. Raises :class:`JobError` as :func:`build_jobs` does.
    """
    check_job(spec)
    return _build(spec, spec.placement or (), fabric, PortBook(1, fabric), model=model)


def check_job(spec: JobSpec) -> None:
    """Raise :class:`JobError` if the job cannot be built, wherever it is placed."""
    of_experts = None if spec.experts is None else spec.experts.problem()
    rules = (
        (is_job_name(spec.name), "a job needs a name without ':'"),
        (
            spec.model in CATALOGUE or any((spec.workload, spec.external, spec.plan)),
            f"unknown model '{spec.model}'{_suggestion(spec.model)}",
        ),
        (spec.plan is None or not _catalogue_only(spec), f"{_catalogue_only(spec)} is not for a parallel layout"),
        (spec.workload is None or not _catalogue_only(spec), f"{_catalogue_only(spec)} is for models of the catalogue"),
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
            not spec.gradients.background
            or spec.model not in CATALOGUE
            or any(phase.collective == "alltoall" for phase in CATALOGUE[spec.model].phases),
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


def _catalogue_only(spec: JobSpec) -> str:
    """A key that an iteration from a file does not take, if one is given."""
    given = {
        "communication": spec.communication_bytes is not None,
        "overlap": spec.overlap is not None,
        "collective": spec.collective is not None,
        "gradients": spec.gradients != AS_IN_THE_CATALOGUE,
        "experts": spec.experts is not None,
    }
    return next((key for key, its in given.items() if its), "")


def _at_least(value: float, least: float) -> bool:
    return math.isfinite(value) and value >= least


def _positive(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and value > 0)


def _suggestion(model: str) -> str:
    return "" if model in CATALOGUE else f", {expectation(model, CATALOGUE)}"


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


def _build(
    spec: JobSpec,
    gpus: tuple[str, ...],
    fabric: Fabric,
    ports: PortBook,
    most_messages: int = MESSAGES,
    model: Model | None = None,
) -> Job:
    own = frozenset(gpus) if spec.stragglers else frozenset()
    for straggler in spec.stragglers:
        if straggler.gpu not in own:
            raise JobError(spec.name, f"straggler '{straggler.gpu}' is not one of its GPUs")
        if not _positive(straggler.factor):
            raise JobError(spec.name, f"straggler '{straggler.gpu}' needs a factor above 0")
    if spec.plan is not None:
        return _build_planned(spec, gpus, fabric, ports, most_messages)
    if spec.workload is not None:
        return _build_imported(spec, spec.workload, gpus, fabric, ports, most_messages)
    if model is None:
        model = CATALOGUE[spec.model] if spec.external is None else _declared(spec)
    if spec.experts is not None and spec.experts.inference:
        model = forward_pass(model)
    every = spec.gradients.every
    compute, flops = (every * amount for amount in _work(spec, model))
    tokens = () if spec.experts is None else spec.experts.tokens(len(gpus))
    layout = layout_of(gpus, fabric, tokens)
    phases = _templates(spec, model)
    if spec.experts is not None and spec.experts.chunk is not None:
        phases = pipelined(phases, model.expert_share, model.expert_layers, spec.experts.chunk)
    templates = exchanged(phases, spec.gradients)
    expanded = _expanded(spec, templates, layout, most_messages)
    built = tuple(
        phase_of(spec.name, template, messages, compute, inside_bytes(layout, template, messages))
        for template, messages in expanded
    )
    return replace(
        _made(spec, gpus, ports, built, [each for _, sent in expanded for each in sent], flops * len(gpus)),
        model=model.name,
        iterations=math.ceil(spec.iterations / every),
        stragglers=_stragglers(spec, model, gpus, tokens),
        external=spec.external,
    )


def _build_planned(spec: JobSpec, gpus: tuple[str, ...], fabric: Fabric, ports: PortBook, most_messages: int) -> Job:
    """The job of a parallel layout, or of pools of instances: from those follows what it computes and sends."""
    if isinstance(spec.plan, ServingPlan):
        seed = f"{ports.seed} {fabric.gpu_place[gpus[0]]}"
        rounds = rounds_of(spec.name, spec.plan, gpus, fabric, spec.channels, seed, most_messages)
        made = _made(spec, gpus, ports, rounds.phases, rounds.messages, rounds.flops)
        return replace(made, served=rounds.served, iterations=rounds.served.iterations)
    assert spec.plan is not None
    stages = stages_of(spec.name, spec.plan, gpus, fabric, spec.channels, most_messages)
    return _made(spec, gpus, ports, stages.phases, stages.messages, spec.plan.flops)


def _made(
    spec: JobSpec,
    gpus: tuple[str, ...],
    ports: PortBook,
    phases: tuple[Phase, ...],
    messages: Sequence[Message],
    flops: float,
) -> Job:
    """The job of an iteration of ``phases`` that send ``messages`` and do ``flops``."""
    return Job(
        name=spec.name,
        model=spec.model,
        gpus=gpus,
        phases=phases,
        flows=flows_of(spec.name, messages, ports),
        flops=flops,
        iterations=spec.iterations,
        start_s=spec.start_s,
        jitter=spec.jitter,
        stragglers=spec.stragglers,
        draws=ports.draws(gpus),
        compute_source="" if spec.plan is None else spec.plan.compute_source,
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


def _build_imported(
    spec: JobSpec,
    workload: ImportedWorkload,
    gpus: tuple[str, ...],
    fabric: Fabric,
    ports: PortBook,
    most_messages: int,
) -> Job:
    """The job whose iteration was read from a file; its FLOPs are those of a transformer that computes as long."""
    if len(gpus) != workload.parallelism.gpus:
        raise JobError(spec.name, f"has {len(gpus)} GPUs, its workload is for {workload.parallelism.gpus}")
    compute_s = workload.compute_s if spec.compute_s is None else spec.compute_s
    found = []
    left = most_messages
    for part in expanded(workload, OnFabric(gpus, fabric, spec.channels), spec.phases):
        left -= len(part.messages)
        if left < 0:
            raise JobError(spec.name, f"too many messages, expected at most {MESSAGES} in an iteration of all jobs")
        found.append(part)
    phases = tuple(
        phase_of(spec.name, part.template, part.messages, compute_s, part.inside, part.groups) for part in found
    )
    flops = (compute_s * TRANSFORMER_FLOPS if spec.flops is None else spec.flops) * len(gpus)
    messages = [message for part in found for message in part.messages]
    return replace(_made(spec, gpus, ports, phases, messages, flops), left_out=workload.said_left_out)


def _expanded(
    spec: JobSpec, templates: Sequence[PhaseTemplate], layout: Layout, most: int
) -> list[tuple[PhaseTemplate, tuple[Message, ...]]]:
    """Each template with its messages; :class:`JobError` if they are more than ``most`` together."""
    found: list[tuple[PhaseTemplate, tuple[Message, ...]]] = []
    left = most
    for template in templates:
        messages = _messages(template, layout, spec.channels, left + 1)
        left -= len(messages)
        if left < 0:
            raise JobError(spec.name, f"too many messages, expected at most {MESSAGES} in an iteration of all jobs")
        found.append((template, messages))
    return found


def _messages(template: PhaseTemplate, layout: Layout, channels: int, most: int) -> tuple[Message, ...]:
    """The messages of a phase, one per channel: those that go, and those that come back from experts beside them."""
    messages = expand(template.collective, layout, template.bytes, channels=channels, most=most)
    if template.returning:
        return returned(messages)
    if not template.back_bytes:
        return messages
    back = returned(expand(template.collective, layout, template.back_bytes, channels=channels, most=most))
    by_channel = {each.channel: each for each in messages}
    for each in back:
        before = by_channel.get(each.channel)
        by_channel[each.channel] = each if before is None else replace(before, bytes=before.bytes + each.bytes)
    return tuple(by_channel.values())


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
