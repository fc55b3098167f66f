"""Find, read, override and validate a scenario: everything that is wrong at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import PrivateAttr, TypeAdapter, ValidationError

from testbed import bundled_scenarios
from testbed.bundled_scenarios import names as bundled
from testbed.errors import BadInputError
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.scenario.crosscheck import Parts, cross_problems, job_names
from testbed.scenario.document import Document, DocumentError, Location, Problem, parse_yaml
from testbed.scenario.messages import problems_of
from testbed.scenario.narrowing import leave_out_checks, own_entries, scheduler_labels, take_own_entries
from testbed.scenario.network.fabrics import FabricSection, FabricSpec, find_files
from testbed.scenario.network.failures import FailureSpec
from testbed.scenario.old_keys import rename_old_keys, tell_override, today
from testbed.scenario.spec import JobEntry, MeasureSpec, Names, ScaleSpec, ScenarioSpec, SchedulerEntry
from topologies.input.spelling import nearest
from topologies.limits import SCENARIO_NAME, YAML_BYTES, LimitError, line_of_damage, one_line, read_text

T = TypeVar("T")


class Scenario(ScenarioSpec):
    """A validated scenario that still knows the lines it was read from."""

    _document: Document = PrivateAttr(default_factory=lambda: Document("scenario", None))

    def resolved_yaml(self) -> str:
        """Return the scenario as YAML, overrides and defaults filled in; it loads to an equal scenario."""
        data = self.model_dump(mode="json", exclude_none=True)
        data["scale"] = data.get("scale", "auto")
        data["fabric"] = {"kind": data["fabric"]["kind"], **data["fabric"]}
        ordered = {key: data[key] for key in type(self).model_fields if key in data}
        return yaml.safe_dump(ordered, sort_keys=False, width=120)

    def __eq__(self, other: object) -> bool:
        """Scenarios are equal if what they say is, wherever they were read from."""
        return isinstance(other, Scenario) and self.__dict__ == other.__dict__

    @property
    def choices(self) -> tuple[SchedulerChoice, ...]:
        """The schedulers to run, in order; the first is the baseline."""
        return tuple(entry.choice for entry in self.schedulers)

    def line_of_job(self, name: str, message: str) -> str:
        """Return ``file:line: message`` for the job called ``name`` (after ``count`` made names of it)."""
        index = next((index for index, job in enumerate(self.jobs) if name in job_names(job)), None)
        return self.line_of(("jobs",) if index is None else ("jobs", index), message)

    def line_of(self, location: Location, message: str) -> str:
        """Return ``file:line: message`` for what stands at ``location``."""
        return self._document.line(Problem(location, message))


def load(
    path_or_name: str | Path,
    overrides: Sequence[str] = (),
    *,
    models: Sequence[str] | None = None,
    schedulers: Sequence[str] | None = None,
) -> Scenario:
    """Read a scenario file, or a bundled scenario by its name, and apply ``KEY=VALUE`` overrides.

    ``models`` and ``schedulers`` are the names that exist, by default the catalogue's and the
    registry's. Raises :class:`BadInputError` with one line for everything that is wrong.
    """
    text, path = text_of(str(path_or_name))
    try:
        document = parse_yaml(text, path)
        _require_mapping(document)
        _refuse(document, rename_old_keys(document))
        before = scheduler_labels(document.data)
        _override(document, overrides)
        leave_out_checks(document, before)
        find_files(cast("dict[str, object]", document.data), _folder_of(path))
    except DocumentError as error:
        raise BadInputError(str(error)) from None
    data = cast("dict[str, object]", document.data)
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).lstrip("._-")[:SCENARIO_NAME]
    data.setdefault("name", own or "scenario")
    names = Names(_models() if models is None else tuple(models), _schedulers(schedulers))
    scenario = _validate(document, names)
    if schedulers is None:
        _try_schedulers(scenario, document)
    return scenario


def text_of(name: str) -> tuple[str, str]:
    """Return the text of a scenario, a file or a bundled one, and what to call it in messages."""
    path, shown = Path(name), name
    try:
        if path.exists():
            return read_text(path, YAML_BYTES), shown
        shown = name if name.endswith(".yaml") else f"{name}.yaml"
        if shown in bundled():
            return bundled_scenarios.text(shown), shown
    except UnicodeDecodeError as error:
        raise BadInputError(one_line(f"{name}:{line_of_damage(error)}: not UTF-8 text, expected a YAML file")) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        expected = (
            f"a scenario file of at most {YAML_BYTES} bytes" if isinstance(error, LimitError) else "a scenario file"
        )
        raise BadInputError(one_line(f"{name}: cannot be read ({reason}), expected {expected}")) from None
    near = nearest(shown, bundled())
    meant = f"did you mean '{near}'?" if near else f"expected a path or a bundled scenario: {', '.join(bundled())}"
    raise BadInputError(f"{one_line(name)}: no such file, {meant}")


def _folder_of(path: str) -> Path:
    """Where the files lie that a scenario names."""
    return Path(path).parent if Path(path).exists() else bundled_scenarios.folder()


def _refuse(document: Document, problems: Sequence[Problem]) -> None:
    if problems:
        raise DocumentError(document.lines(problems))


def _override(document: Document, overrides: Sequence[str]) -> None:
    lines: list[str] = []
    for override in overrides:
        own = own_entries(document.data)
        try:
            document.override(override, today)
            take_own_entries(document, own)
            tell_override(override)
            lines += document.lines(rename_old_keys(document))
        except DocumentError as error:
            lines += error.lines
    if lines:
        raise DocumentError(lines)


def _require_mapping(document: Document) -> None:
    if not isinstance(document.data, dict):
        what = "empty" if document.data is None else "no mapping of keys to values"
        line = Problem((), f"the scenario is {what}, expected the keys fabric, jobs, schedulers, ..")
        raise DocumentError([document.line(line)])


def _models() -> tuple[str, ...]:
    from workloads.models.catalogue import CATALOGUE
    from workloads.training.shape_files import shapes

    return (*CATALOGUE, *shapes())


def _schedulers(given: Sequence[str] | None) -> tuple[str, ...]:
    if given is not None:
        return tuple(given)
    from controller.schedulers.registry import names

    return tuple(names())


def _try_schedulers(scenario: Scenario, document: Document) -> None:
    """Create each scheduler once: only it knows its options."""
    from controller.schedulers.registry import create

    problems = []
    for index, entry in enumerate(scenario.schedulers):
        try:
            scheduler = create(entry.name, entry.options, scenario.seed)
        except (ValueError, TypeError) as error:
            problems.append(Problem(("schedulers", index), str(error)))
            continue
        if scenario.manager is not None and scheduler.alone:
            why = (
                f"{entry.choice.label} runs each job by itself, expected another scheduler where a manager places jobs"
            )
            problems.append(Problem(("schedulers", index), why))
    if problems:
        raise BadInputError("\n".join(document.lines(problems)))


def _validate(document: Document, names: Names) -> Scenario:
    data = cast("dict[str, object]", document.data)
    problems: list[Problem] = []
    scenario: Scenario | None = None
    try:
        scenario = Scenario.model_validate(data, context=names)
    except ValidationError as error:
        problems = problems_of(error, data)
    problems += cross_problems(_parts(data, names))
    if scenario is None or problems:
        raise BadInputError("\n".join(document.lines(problems)))
    scenario._document = document
    return scenario


def _parts(data: Mapping[str, object], names: Names) -> Parts:
    """Validate each part alone: one wrong job must not hide what is wrong between the others."""
    fabric = _alone(TypeAdapter[FabricSection](FabricSpec), data.get("fabric"), names)
    jobs = dict(_items(TypeAdapter(JobEntry), data.get("jobs"), names))
    schedulers = dict(_items(TypeAdapter(SchedulerEntry), data.get("schedulers"), names))
    checks = dict(_items(TypeAdapter(str), data.get("checks"), names))
    failures = dict(_items(TypeAdapter(FailureSpec), data.get("failures"), names))
    measure = _alone(TypeAdapter(MeasureSpec), data.get("measure", {}), names)
    limit_s = inf if measure is None else measure.time_limit
    complete = len(jobs) == _length(data.get("jobs")) and len(schedulers) == _length(data.get("schedulers"))
    choices = {index: entry.choice for index, entry in schedulers.items()}
    scale = _alone(TypeAdapter(ScaleSpec), data.get("scale"), names)
    dilated = scale is not None and scale.time != 1.0
    managed = data.get("manager") is not None
    return Parts(fabric, jobs, choices, checks, failures, limit_s, complete, managed, dilated)


def _length(items: object) -> int:
    return len(items) if isinstance(items, list) else -1


def _items(adapter: TypeAdapter[T], items: object, names: Names) -> Iterator[tuple[int, T]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        value = _alone(adapter, item, names)
        if value is not None:
            yield index, value


def _alone(adapter: TypeAdapter[T], data: object, names: Names) -> T | None:
    try:
        return adapter.validate_python(data, context=names)
    except ValidationError:
        return None
