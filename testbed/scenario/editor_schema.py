"""The JSON schema of a scenario file, with the names that exist: editors complete and check by it while one types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controller.schedulers import registry as schedulers
from testbed.scenario.managers import POINTS
from testbed.scenario.spec import SCENARIO_NAME, ScenarioSpec
from workloads.communication.collectives import COLLECTIVES
from workloads.managers import registry as parts
from workloads.managers.catalogue import MANAGERS
from workloads.models.catalogue import CATALOGUE
from workloads.training.shape_files import shapes

ID: Final = "urn:testbed:schema:scenario:1"
"""Names the schema, and is no address; the number rises when a file that was right may be so no more."""
Schema = dict[str, Any]


def editor_schema() -> Mapping[str, object]:
    """Return the schema; ``name`` may be left out in a file.

    What packages can add to (schedulers, parts of managers) has the names that are installed here and takes others: the
    file may be meant for another machine. What is built in only (models, collectives, managers) takes no others.
    """
    schema: Schema = ScenarioSpec.model_json_schema(mode="validation")
    schema["title"] = "Scenario of the testbed"
    schema["required"] = [key for key in schema["required"] if key != "name"]
    _name_schedulers(schema)
    _name_managers(schema)
    job = schema["$defs"]["JobEntry"]["properties"]
    _alternative_of(job["model"])["enum"] = [*CATALOGUE, *shapes()]
    job["model"].pop("default")
    schema["$defs"]["JobEntry"]["anyOf"] = [
        {"required": ["model"]},
        {"required": ["command", "flops"], "properties": {"kind": {"const": "external"}}},
    ]
    _alternative_of(job["collective"])["enum"] = list(COLLECTIVES)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID, **schema}


def _name_schedulers(schema: Schema) -> None:
    schema["$defs"]["SchedulerName"] = _open(schedulers.names(), "a scheduler by name")
    name = {"$ref": "#/$defs/SchedulerName"}
    _replace_text(schema["properties"]["schedulers"]["items"], name)
    schema["$defs"]["SchedulerSpec"]["properties"]["name"] = name


def _name_managers(schema: Schema) -> None:
    managers = {"enum": sorted(MANAGERS), "type": "string"}
    _replace_text(schema["properties"]["manager"], managers)
    own = schema["$defs"]["ManagerSpec"]["properties"]
    own["name"].update(managers)
    for point in POINTS:
        name = {"$ref": f"#/$defs/{point.capitalize()}Name"}
        schema["$defs"][f"{point.capitalize()}Name"] = _open(parts.names(point), f"a {point} by name")
        with_options = {"allOf": [{"$ref": "#/$defs/PartSpec"}, {"properties": {"name": name}}]}
        own[point]["anyOf"] = [name, with_options]


def _open(names: Sequence[str], description: str) -> Schema:
    """The known names, or any other that is a name."""
    choices = [{"enum": list(names)}, {"type": "string", "pattern": SCENARIO_NAME}]
    return {"anyOf": choices, "description": description}


def _alternative_of(field: Schema) -> Schema:
    """The member of a field's alternatives that is text."""
    alternatives: list[Schema] = field["anyOf"] if "anyOf" in field else field["oneOf"]
    found = next(each for each in alternatives if each.get("type") == "string")
    return found


def _replace_text(field: Schema, by: Schema) -> None:
    """Put ``by`` in place of the alternative that is any text."""
    field["anyOf"] = [by if each == {"type": "string"} else each for each in field["anyOf"]]
