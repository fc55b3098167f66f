"""The scenario file as pydantic models: what may be written, its defaults, and its JSON schema."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from testbed.experiment.experiment import Measure, Scale
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.checks import RUN_METRICS, VERDICTS, CheckError, parse_check
from testbed.scenario.jobs.model_file import ModelFileSpec
from testbed.scenario.jobs.serving_keys import JobKind, ServingKeys
from testbed.scenario.managers import ManagerEntry, WithOptions, by_name
from testbed.scenario.network.fabrics import FabricSpec, kinds_spelled
from testbed.scenario.network.failures import FailureSpec, RecoverySpec
from testbed.scenario.network.simulation import NetworkSpec, SharingEntry
from testbed.scenario.quantities import (
    Count,
    Factor,
    Flag,
    Number,
    PositiveTime,
    PositiveWork,
    Seed,
    Share,
    Size,
    Text,
    Time,
    expected,
)
from topologies import limits
from topologies.built_part import Build
from topologies.datapath import Datapath
from topologies.input.spelling import expectation
from topologies.network.load_balancing import LoadBalancing
from topologies.shaping import DEFAULT_LEVELS
from workloads.build import MAX_JITTER
from workloads.communication.collectives import COLLECTIVES
from workloads.communication.experts import Experts
from workloads.communication.gradients import CATALOGUE_BITS, Gradients
from workloads.external import check_variables
from workloads.job import JOB_NAME

SCENARIO_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
RESERVED_LABELS: Final = frozenset(
    {"comparison", "baseline", "plots", *VERDICTS, *(key.split(".")[0] for key in RUN_METRICS)}
)
"""Words that checks, ``summary.json`` and run directories use for something else."""
VIRTUAL_CLUSTER: Final = r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$"


@dataclass(frozen=True, slots=True)
class Names:
    """The models and schedulers that exist; the validation context."""

    models: tuple[str, ...]
    schedulers: tuple[str, ...]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StragglerSpec(_Spec):
    """One GPU whose compute takes ``factor`` times as long."""

    gpu: str = Field(description="a GPU such as h0g0")
    factor: Factor = Field(description="the multiplier of its compute time, such as 1.3")


class GradientsSpec(_Spec):
    """What a job does to its gradient exchange; see :class:`workloads.communication.gradients.Gradients`."""

    bits: Annotated[float, Field(strict=True, gt=0, le=32)] = Field(
        CATALOGUE_BITS, description="bits per element, 16 in the catalogue"
    )
    compression: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        1.0, description="share of the elements that is sent"
    )
    every: Annotated[int, Field(strict=True, ge=1, le=limits.GRADIENTS_EVERY)] = Field(
        1, description="iterations between exchanges"
    )
    buckets: Count | None = Field(None, description="parts that leave as the backward pass makes them")
    partitions: Count | None = Field(None, description="parts of which those needed first go first")
    background: Flag = Field(False, description="whether it goes on beside the backward pass's all-to-alls")
    ralp: Flag = Field(False, description="whether parameter servers compute a convolutional network's dense layers")

    def value(self) -> Gradients:
        """Return them as jobs take them."""
        return Gradients(
            self.bits, self.compression, self.every, self.buckets, self.partitions, self.background, self.ralp
        )


class ExpertsSpec(_Spec):
    """Where the experts of a job lie and what is asked of them; see :mod:`workloads.communication.experts`."""

    popularity: tuple[Number, ...] = Field(
        min_length=1, max_length=limits.EXPERTS, description="tokens that each expert is expected to get"
    )
    routed: tuple[Number, ...] | None = Field(
        None, max_length=limits.EXPERTS, description="tokens that each expert gets, if not as expected"
    )
    placement: Literal["even", "popular"] = Field(
        "even", description="even: as many GPUs for each; popular: GPUs in proportion to popularity"
    )
    corrected: Flag = Field(False, description="whether GPUs follow what is routed, once that is known")
    inference: Flag = Field(False, description="whether iterations are forward passes, without gradients")
    chunk: Size | None = Field(None, description="size of a micro-op: experts compute one while others travel")

    def value(self) -> Experts:
        """Return them as jobs take them."""
        return Experts(self.popularity, self.routed, self.placement, self.corrected, self.inference, self.chunk)


def _known(what: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        raise ValueError(f"unknown {what} '{name}', {expectation(name, known)}")
    return name


def one_of(names: Sequence[str]) -> str:
    """Spell a choice: ``one of a, b, c``."""
    return f"one of {', '.join(names)}"


def _known_model(name: str, info: ValidationInfo) -> str:
    if not name:
        if info.data.get("kind") == "external":
            return ""
        raise PydanticCustomError("missing", "Field required")
    return _known("model", name, info.context.models) if isinstance(info.context, Names) else name


def _words(value: object) -> object:
    """A command as a list of words, from a line that is split as a shell does."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise expected(f"a command line: {str(error).lower()}") from None


def _right_variables(words: tuple[str, ...]) -> tuple[str, ...]:
    check_variables(words)
    return words


Command = Annotated[
    tuple[Text, ...],
    BeforeValidator(_words, str | tuple[Text, ...]),
    Field(min_length=1, max_length=limits.ENVIRONMENT),
    AfterValidator(_right_variables),
]
"""Words, or a line."""


def _known_collective(name: str) -> str:
    return _known("collective", name, tuple(COLLECTIVES))


def _known_scheduler(name: str, info: ValidationInfo) -> str:
    return _known("scheduler", name, info.context.schedulers) if isinstance(info.context, Names) else name


def _free_label(label: str, info: ValidationInfo) -> str:
    """A label of which nobody thinks that it means something else."""
    others = info.context.schedulers if isinstance(info.context, Names) else ()
    if label in others and label != info.data.get("name"):
        raise ValueError(f"label '{label}' is the name of another scheduler, expected a name that is free")
    if label in RESERVED_LABELS:
        raise ValueError(f"label '{label}' has a meaning of its own in checks or run directories, expected another")
    return label


def _is_file(model: object) -> str:
    return "model-file" if isinstance(model, dict | ModelFileSpec) else "catalogue-model"


ModelChoice = Annotated[
    Annotated[str, AfterValidator(_known_model), Tag("catalogue-model")] | Annotated[ModelFileSpec, Tag("model-file")],
    Discriminator(_is_file),
]
Channels = Annotated[int, Field(strict=True, ge=1, le=limits.CHANNELS)]


class JobEntry(ServingKeys):
    """A job; what is left out comes from the model's entry in the catalogue."""

    name: str = Field(pattern=JOB_NAME, max_length=limits.NAME, description="a name for the job")
    kind: JobKind | None = Field(
        None, description="training, serving (requests to a large model), or external: a real program"
    )
    model: ModelChoice = Field(
        "",
        validate_default=True,
        description="a model of the catalogue, such as gpt or llama3-8b, or a file: {simai: FILE}",
    )
    command: Command | None = Field(
        None, description="what an external job runs on each host, with {rank}, {addresses}, .. of the host"
    )
    environment: dict[str, Text] | None = Field(
        None, max_length=limits.ENVIRONMENT, description="more variables of the environment of an external job"
    )
    processes: Count | None = Field(None, description="processes of a host that report iterations (default 1)")
    progress: Literal["client", "traffic"] | None = Field(
        None, description="how iterations of an external job are found (default: client, through testbed.client)"
    )
    start_limit: PositiveTime | None = Field(
        None, description="longest time until an external job begins its first iteration (default 60s)"
    )
    gpus: Count | None = Field(None, description="number of GPUs, placed by placement_policy")
    placement: tuple[str, ...] | None = Field(
        None, min_length=1, description="the GPUs: hosts (h0), GPUs of a host (h1:0-3, h1:0,2) or single ones (h1g4)"
    )
    share_gpus_with: str | None = Field(
        None, description="the job whose GPUs it shares: they compute for one at a time"
    )
    count: Annotated[int, Field(strict=True, ge=1, le=limits.JOBS)] = Field(
        1, description="how many such jobs; more than one are named name-0, name-1, .."
    )
    start: Time = Field(0.0, description="when the job arrives")
    iterations: Annotated[int, Field(strict=True, ge=1, le=limits.ITERATIONS)] = Field(
        1000, description="iterations of the whole job, for its completion time"
    )
    compute: PositiveTime | None = Field(None, description="compute of one iteration on one GPU")
    communication: Size | None = Field(None, description="bytes that a GPU hands to the collective per iteration")
    overlap: Share | None = Field(None, description="share of the compute that communication may overlap, 0 to 1")
    flops: PositiveWork | None = Field(None, description="work of one iteration on one GPU")
    collective: Annotated[str, AfterValidator(_known_collective)] | None = Field(
        None, description="ring, hierarchical, alltoall, .."
    )
    channels: Channels | None = Field(
        None,
        description="connections per pair of ports, each with an equal share of the bytes (default: the scenario's)",
    )
    jitter: Annotated[float, Field(strict=True, ge=0, le=MAX_JITTER)] = Field(
        0.0, description="standard deviation of compute relative to its mean"
    )
    stragglers: tuple[StragglerSpec, ...] = Field((), description="GPUs that compute slower")
    gradients: GradientsSpec | None = Field(None, description="their exchange: fewer bytes, less often, earlier")
    experts: ExpertsSpec | None = Field(None, description="the GPUs and tokens of each expert of a mixture")
    virtual_cluster: str = Field(
        "",
        pattern=VIRTUAL_CLUSTER,
        max_length=limits.NAME,
        description="the virtual cluster it belongs to; with a manager",
    )
    min_gpus: Count | None = Field(None, description="fewest GPUs of an elastic job; with a manager")
    max_gpus: Count | None = Field(None, description="most GPUs of an elastic job; with a manager")
    opportunistic: Flag = Field(False, description="whether it is content with what is idle; with a manager")
    priority: Annotated[int, Field(strict=True, ge=-limits.PRIORITY, le=limits.PRIORITY)] = Field(
        0, description="higher goes first inside a virtual cluster; with a manager"
    )
    gpu_type: str = Field(
        "",
        pattern=VIRTUAL_CLUSTER,
        max_length=limits.NAME,
        description="the type of GPUs that it asks for, of the placer's gpu_types; with a manager",
    )


Label = Annotated[str, Field(pattern=JOB_NAME, max_length=limits.NAME), AfterValidator(_free_label)]


class SchedulerSpec(WithOptions):
    """A scheduler by name, under a label if it stands there several times.

    ``load_balancing`` replaces that of the network for its run; every other key is an option of the scheduler's own.
    """

    name: Annotated[str, AfterValidator(_known_scheduler)] = Field(description="a scheduler, such as crux")
    label: Label | None = Field(None, description="what checks, tables and run directories call it (default: its name)")
    load_balancing: LoadBalancing | None = Field(None, description="in its run, in place of network.load_balancing")

    @property
    def choice(self) -> SchedulerChoice:
        """Return it as engines take it."""
        return SchedulerChoice(self.name, self.options, self.label or self.name, self.load_balancing)


class MeasureSpec(_Spec):
    """How long to measure."""

    iterations: Count = Field(20, description="iterations of every job to measure")
    warmup: Number = Field(3, description="iterations of every job before that")
    time_limit: PositiveTime = Field(300.0, description="longest time a run may take, undilated")

    def value(self) -> Measure:
        """Return it as engines take it."""
        return Measure(self.iterations, self.warmup, self.time_limit)


class ScaleSpec(_Spec):
    """How the emulation is shrunk; see :class:`testbed.experiment.experiment.Scale`."""

    bandwidth: Factor = Field(description="the divisor of link rates and messages, such as 32000")
    time: Factor = Field(1.0, description="the multiplier of pauses and messages")
    mtu: Annotated[int, Field(strict=True, ge=576, le=65535)] = Field(9000, description="largest packet in bytes")

    def value(self) -> Scale:
        """Return it as engines take it."""
        return Scale(self.bandwidth, self.time, self.mtu)


def _show_scheduler(spec: SchedulerSpec) -> object:
    label = {} if spec.label in (None, spec.name) else {"label": spec.label}
    balancing = {} if spec.load_balancing is None else {"load_balancing": spec.load_balancing}
    shown = {"name": spec.name, **label, **balancing, **spec.options}
    return shown if len(shown) > 1 else spec.name


def _auto_is_none(value: object) -> object:
    if value == "auto":
        return None
    if value is None or not isinstance(value, dict | ScaleSpec):
        raise expected("auto, or a mapping such as {bandwidth: 32000, time: 2}")
    return value


def _parsed_check(text: str) -> str:
    try:
        parse_check(text)
    except CheckError as error:
        raise ValueError(str(error)) from None
    return text


SchedulerEntry = Annotated[
    SchedulerSpec,
    BeforeValidator(by_name, str | SchedulerSpec),
    PlainSerializer(_show_scheduler, return_type=object),
]
ScaleEntry = Annotated[
    ScaleSpec | None,
    BeforeValidator(_auto_is_none, Literal["auto"] | ScaleSpec),
    PlainSerializer(lambda spec: "auto" if spec is None else spec.model_dump(), return_type=object),
]


class ScenarioSpec(_Spec):
    """Everything a scenario file may hold."""

    name: str = Field(
        pattern=SCENARIO_NAME,
        max_length=limits.SCENARIO_NAME,
        description="name of the scenario (default: that of the file)",
    )
    description: Text = Field("", description="what the scenario shows")
    fabric: FabricSpec = Field(description=f"the fabric, with its kind: {kinds_spelled()}")
    jobs: tuple[JobEntry, ...] = Field(min_length=1, max_length=limits.JOBS, description="a list of jobs")
    placement_policy: Literal["first-free", "spread"] = Field(
        "first-free", description="where jobs without placement go"
    )
    channels: Channels = Field(4, description="connections per pair of ports of jobs that say nothing else")
    manager: ManagerEntry | None = Field(None, description="a cluster manager that places jobs as they come")
    schedulers: tuple[SchedulerEntry, ...] = Field(min_length=1, description="a list of schedulers to compare")
    measure: MeasureSpec = Field(MeasureSpec.model_construct(), description="how long to measure")
    scale: ScaleEntry = Field(None, description="auto, or how far the emulation is shrunk")
    datapath: Datapath | None = Field(
        None, description="what forwards the packets of an emulation (default: the best that the machine has)"
    )
    sharing: SharingEntry = Field(
        "max-min", description="how flows of one level share a link in the flow engine: max-min or proportional"
    )
    network: NetworkSpec = Field(NetworkSpec.model_construct(), description="what the network of a simulation is")
    build: Build = Field(
        "used",
        description="what of the fabric an emulation builds: what some connection of a job can use, or all",
    )
    levels: Annotated[int, Field(strict=True, ge=1, le=DEFAULT_LEVELS)] = Field(
        DEFAULT_LEVELS, description="strict priority levels"
    )
    failures: tuple[FailureSpec, ...] = Field(
        (), max_length=limits.FAILURES, description="cables, NICs, switches and hosts that fail"
    )
    recovery: RecoverySpec = Field(
        RecoverySpec.model_construct(), description="what becomes of a job that failures cut off"
    )
    seed: Seed = Field(1, description="seed of every hash and random draw")
    checks: tuple[Annotated[Text, AfterValidator(_parsed_check)], ...] = Field(
        (), max_length=limits.CHECKS, description="what must hold at the end"
    )
