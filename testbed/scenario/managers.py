"""The key ``manager`` of a scenario: who places jobs as they come, put together from four parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from testbed.experiment.experiment import JobFailures, Managed, Submission
from testbed.scenario.quantities import Flag
from topologies.limits import OPTION
from workloads.managers.catalogue import MANAGERS, unknown_manager
from workloads.managers.registry import GROUPS, Point

POINTS: Final[tuple[Point, ...]] = tuple(GROUPS)


class WithOptions(BaseModel):
    """Something by name; every other key is an option of its own."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        wrong = next((each for each in _numbers(self.model_extra) if not abs(each) <= OPTION), None)
        if wrong is not None:
            raise ValueError(f"an option has the number {wrong}, expected at most {OPTION:g}")
        return self

    @property
    def options(self) -> Mapping[str, object]:
        """The options given to it."""
        return dict(self.model_extra or {})


def _numbers(value: object) -> Iterator[int | float]:
    """All numbers in the options ``value``."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)


class PartSpec(WithOptions):
    """A part of a manager by name, or the options of the one that is there."""

    name: str | None = Field(None, description="a queue, policy, placer or capacity, such as fifo")


def by_name(value: object) -> object:
    """Take a bare name for a mapping with nothing but it."""
    return {"name": value} if isinstance(value, str) else value


def _show(spec: PartSpec | ManagerSpec) -> object:
    given = spec.model_dump(exclude_defaults=True)
    return given["name"] if set(given) == {"name"} else given


Part = Annotated[PartSpec, BeforeValidator(by_name, str | PartSpec), PlainSerializer(_show, return_type=object)]
_NOTHING: Final = PartSpec.model_construct(name=None)


class JobFailuresSpec(BaseModel):
    """Jobs fail and are tried again; see :class:`testbed.experiment.experiment.JobFailures`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    retries: Annotated[int, Field(strict=True, ge=0, le=100)] = Field(4, description="attempts after the first")
    prerun: Flag = Field(False, description="whether the first iteration is tried first")
    blacklist: Flag = Field(False, description="whether what fails the same way is not tried again")
    early_stop_at: Annotated[float, Field(strict=True, gt=0, le=1)] | None = Field(
        None, description="share of its iterations at which a job ends"
    )

    def value(self) -> JobFailures:
        """Return them as runs take them."""
        return JobFailures(self.retries, self.prerun, self.blacklist, self.early_stop_at)


class ManagerSpec(BaseModel):
    """A cluster manager by name; each of its parts may be another one, or have options."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field("consolidated", description="a manager, such as tiresias")
    queue: Part = Field(_NOTHING, description="who may start, in which order")
    policy: Part = Field(_NOTHING, description="who gets how many GPUs")
    placer: Part = Field(_NOTHING, description="which GPUs")
    capacity: Part = Field(_NOTHING, description="which hosts are there")
    job_failures: JobFailuresSpec | None = Field(None, description="jobs fail and are tried again")


ManagerEntry = Annotated[
    ManagerSpec, BeforeValidator(by_name, str | ManagerSpec), PlainSerializer(_show, return_type=object)
]


def managed(spec: ManagerSpec, submissions: Sequence[Submission]) -> Managed:
    """Return the parts of ``spec`` by name, with the jobs; ``ValueError``, one line, for an unknown manager."""
    if spec.name not in MANAGERS:
        raise ValueError(unknown_manager(spec.name))
    whole = MANAGERS[spec.name]
    usual: dict[Point, str] = {
        "queue": whole.queue,
        "policy": whole.policy,
        "placer": whole.placer,
        "capacity": "steady",
    }
    given: dict[Point, PartSpec] = {point: getattr(spec, point) for point in POINTS}
    names = {point: part.name or usual[point] for point, part in given.items()}
    options: dict[str, Mapping[str, object]] = {
        point: {**(whole.options.get(point, {}) if names[point] == usual[point] else {}), **part.options}
        for point, part in given.items()
    }
    return Managed(
        tuple(submissions),
        names["queue"],
        names["policy"],
        names["placer"],
        names["capacity"],
        options,
        None if spec.job_failures is None else spec.job_failures.value(),
    )
