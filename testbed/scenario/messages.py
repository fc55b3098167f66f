"""From pydantic's errors to one line each: what is wrong, what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from testbed.scenario.document import Location, Problem
from testbed.scenario.network.fabrics import FABRICS
from testbed.scenario.quantities import EXPECTED
from testbed.scenario.spec import ScenarioSpec, one_of
from topologies.input.spelling import expectation
from topologies.limits import one_line
from workloads.job import JOB_NAME_FORM

_TAGS: Final = frozenset({"catalogue-model", "model-file"})
"""Of the alternatives of a job's model: pydantic puts them into locations."""
_SHOWN: Final = 120
"""Characters of a wrong value in its message."""
_EXPECTED: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "greater_than_equal": "at least {ge:.10g}",
    "greater_than": "more than {gt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "less_than": "less than {lt:.10g}",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} item",
    "too_long": "at most {max_length} items",
    "string_too_long": "at most {max_length} characters",
}
_PATTERNS: Final[Mapping[str, str]] = {
    "jobs": JOB_NAME_FORM,
    "label": JOB_NAME_FORM,
    "virtual_cluster": "a letter (A to Z, a to z) or digit, then letters, digits, '.', '_' and '-'",
    "gpu_type": "a letter (A to Z, a to z) or digit, then letters, digits, '.', '_' and '-'",
    "name": "a letter (A to Z, a to z) or digit, then letters, digits, '.', '_' and '-'",
}


def problems_of(error: ValidationError, data: object, prefix: Location = ()) -> list[Problem]:
    """Return a problem for every error; ``data`` is what was validated, found at ``prefix`` in its document."""
    details = error.errors(include_url=False)
    # Of a list pydantic counts only the items that are right: one that holds anything is not too short.
    return [
        _problem(detail, data, prefix) for detail in details if not (detail["type"] == "too_short" and detail["input"])
    ]


def _problem(detail: ErrorDetails, data: object, prefix: Location) -> Problem:
    kind = detail["type"]
    inner = _location(detail["loc"], data, kind == "missing")
    location = (*prefix, *inner)
    if kind == "missing":
        return Problem(location[:-1], _missing(location, data, inner))
    if kind == "extra_forbidden":
        return Problem(location, _unknown_key(location, data, inner))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _fabric_kind(location, kind, detail)
    if kind == "value_error":
        return Problem(location, str(detail.get("ctx", {}).get("error", detail["msg"])))
    shown = _show(detail["input"])
    return Problem(location, f"{_dotted(location)} is {shown}, expected {_expectation(kind, location, detail)}")


def _location(parts: Sequence[str | int], data: Any, missing: bool) -> Location:
    """Drop the parts that pydantic adds (names of union members): what is not in the data is no place in it."""
    out: list[str | int] = []
    parts = [part for part in parts if part not in _TAGS]
    for number, part in enumerate(parts):
        if _holds(data, part):
            data = data[part]
        elif not (missing and number == len(parts) - 1):
            continue
        out.append(part)
    return tuple(out)


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, dict):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _dotted(location: Location) -> str:
    return ".".join(map(str, location)) or "the scenario"


def _show(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return one_line(f"'{value}'" if isinstance(value, str) else str(value), _SHOWN)


def _expectation(kind: str, location: Location, detail: ErrorDetails) -> str:
    if kind == EXPECTED:
        return detail["msg"]
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(str(location[0] if location[-1] == "name" else location[-1]), detail["msg"])
    if kind == "string_type" and isinstance(detail["input"], bool):
        return "text: on, off, yes and no are true and false in YAML, put them in quotes"
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**detail.get("ctx", {})).replace("'", "")
    return detail["msg"][:1].lower() + detail["msg"][1:]


def _model_around(location: Location, data: object, inner: Location) -> type[BaseModel] | None:
    """The model of the mapping that holds the last part of ``location``."""
    around = tuple(part for part in location[:-1] if isinstance(part, str))
    if around != ("fabric",):
        return _model_at(around)
    holder: Any = data
    for part in inner[:-1]:
        holder = holder[part]
    return FABRICS.get(str(holder.get("kind")))


def _model_at(path: Sequence[str]) -> type[BaseModel] | None:
    """The model at ``path``, keys from the scenario on; None where no model or several are."""
    model: type[BaseModel] = ScenarioSpec
    for key in path:
        found = _models_in(model.model_fields[key].annotation) if key in model.model_fields else []
        if len(found) != 1:
            return None
        (model,) = found
    return model


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation names, within lists, alternatives and what is annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _missing(location: Location, data: object, inner: Location) -> str:
    key, model = str(location[-1]), _model_around(location, data, inner)
    info = model.model_fields.get(key) if model else None
    expected = info.description if info and info.description else f"a value for {key}"
    return f"missing key '{key}' in {_dotted(location[:-1])}, expected {expected}"


def _unknown_key(location: Location, data: object, inner: Location) -> str:
    key, model = str(location[-1]), _model_around(location, data, inner)
    known = list(model.model_fields) if model else []
    return f"unknown key '{key}' in {_dotted(location[:-1])}, {expectation(key, known)}"


def _fabric_kind(location: Location, kind: str, detail: ErrorDetails) -> Problem:
    if kind == "union_tag_not_found":
        return Problem(location, f"missing key 'kind' in {_dotted(location)}, expected {one_of(list(FABRICS))}")
    tag = detail.get("ctx", {}).get("tag")
    return Problem((*location, "kind"), f"unknown kind of fabric '{tag}', {expectation(str(tag), FABRICS)}")
