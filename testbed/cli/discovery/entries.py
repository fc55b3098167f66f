"""What there is to be named in a scenario, as JSON-ready entries with equal keys; the first key is the name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

Entries = Sequence[Mapping[str, Any]]


def scenarios() -> dict[str, Entries]:
    """The bundled scenarios: their jobs, GPUs and schedulers are in the files."""
    import yaml

    from testbed import bundled_scenarios

    return {
        "scenarios": [
            _scenario(name.removesuffix(".yaml"), yaml.load(bundled_scenarios.text(name), yaml.CSafeLoader))
            for name in bundled_scenarios.names()
        ]
    }


def _scenario(name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    names = [each if isinstance(each, str) else each.get("label", each["name"]) for each in data["schedulers"]]
    return {
        "name": name,
        "fabric": data["fabric"]["kind"],
        "jobs": sum(job.get("count", 1) for job in data["jobs"]),
        "schedulers": names,
        "summary": data.get("description", ""),
    }


def models() -> dict[str, Entries]:
    """The models of the catalogue with the samples per GPU and iteration, and those that have a parallel layout."""
    from workloads.models.catalogue import CATALOGUE
    from workloads.training.shape_files import shapes

    found: Entries = [
        {
            "name": name,
            "parameters": _millions(model.parameters),
            "batch": model.batch,
            "summary": f"{model.title}, {model.layout}",
            "sources": list(model.sources),
        }
        for name, model in CATALOGUE.items()
    ]
    laid_out: Entries = [
        {
            "name": name,
            "parameters": _millions(shape.parameters),
            "batch": "",
            "summary": f"{shape.title}, laid out as the job says",
            "sources": list(shape.sources),
        }
        for name, shape in shapes().items()
    ]
    return {"models": [*found, *laid_out]}


def _millions(parameters: float) -> str:
    return f"{parameters / 1e6:,.0f}M"


def managers() -> dict[str, Entries]:
    """The cluster managers, and the parts that they and others are made of, those of other packages included."""
    from workloads.managers import registry
    from workloads.managers.catalogue import MANAGERS

    found = [
        {
            "name": name,
            "queue": each.queue,
            "policy": each.policy,
            "placer": each.placer,
            "summary": registry.describe("policy", each.policy).summary,
        }
        for name, each in MANAGERS.items()
    ]
    parts = [registry.describe(point, name) for point in registry.GROUPS for name in registry.names(point)]
    listed = [
        {"name": part.name, "kind": part.kind, "summary": part.problem or part.summary, "package": part.package}
        for part in parts
    ]
    return {"managers": found, "parts": listed}


def collectives() -> dict[str, Entries]:
    """The collectives; ``passes`` is how often the bytes go round the participants."""
    from workloads.communication.collectives import COLLECTIVES

    return {
        "collectives": [
            {"name": name, "passes": each.passes, "summary": each.summary} for name, each in COLLECTIVES.items()
        ]
    }


def fabrics() -> dict[str, Entries]:
    """The kinds of fabric, those of other packages included, with the parameters that must be given."""
    from topologies.parameters import parameters_of
    from topologies.registry import generators

    return {
        "fabrics": [
            {
                "name": kind,
                "required": [each.name for each in parameters_of(generator) if each.required],
                "summary": _first_sentence(generator.__doc__),
            }
            for kind, generator in generators().items()
        ]
    }


def _first_sentence(docstring: str | None) -> str:
    """``Return a fabric of one switch; raises ..`` -> ``a fabric of one switch``."""
    text = " ".join((docstring or "").split())
    return re.split(r"[.;:](?:\s|$)", text.removeprefix("Return "), maxsplit=1)[0].replace("`", "")


ENTRIES: Final[Mapping[str, Callable[[], dict[str, Entries]]]] = MappingProxyType(
    {
        "scenarios": scenarios,
        "models": models,
        "managers": managers,
        "collectives": collectives,
        "fabrics": fabrics,
    }
)
"""What to list -> a function that returns lists by title."""
