"""The inputs of finished runs, read from their directories: what the scenario said, and what its files held.

Runs of versions before there were digests have none: of a file that they read it is unknown what it held.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from io import StringIO
from typing import Any, Final

from controller.schedulers.registry import BUILT_IN as SCHEDULERS
from controller.service.json_codec import decode
from testbed.errors import BadInputError
from testbed.input_digests import KEY
from testbed.report.comparison.settings import flattened
from testbed.results.run_directory import MANIFEST, RunDirectory
from testbed.results.run_inputs import OF_SCHEDULER, SCENARIO, RunInputs
from testbed.scenario import load
from testbed.scenario.document import DocumentError, parse_yaml
from testbed.scenario.network.fabrics import FILE_KEYS
from testbed.scenario.old_keys import rename_old_keys
from topologies.limits import YAML_BYTES, LimitError, read_text
from topologies.registry import BUILT_IN as FABRICS
from workloads.imported.files import ALGORITHM, FORMS, SCHEDULE, SHAPE
from workloads.managers.registry import GROUPS, is_built_in

SHOWN: Final = 12
"""Hexadecimal digits of a digest that are shown and compared: 48 bits, for runs that nobody forges."""
Digests = Mapping[str, Mapping[str, str]]


def inputs_of(directory: RunDirectory, summary: Mapping[str, Any]) -> RunInputs:
    """Return what the run in ``directory`` was given; what its files do not say counts as unknown."""
    digests = _digests(directory)
    settings = _settings(directory)
    unsaid: tuple[str, ...] = ()
    if settings is not None and digests is None:  # an older version wrote it, with other keys and fewer
        whole = _as_today(directory) or settings
        unsaid = tuple(key for key in whole if key not in _renamed(directory, settings))
        settings = whole
    digests = digests or {}
    values = dict(settings or {}) | _schedulers(summary)
    files: dict[str, str] = {}
    unknown = [] if settings is not None else [SCENARIO]
    for key in dict.fromkeys((*digests, *_reading(values, summary))):
        own = digests.get(key)
        if own is None:
            unknown.append(key)
            values[key] = f"{values.get(key, '')} (content unknown)".lstrip()
            continue
        files[key] = next(iter(own)) if len(own) == 1 else f"{next(iter(own))} .. {list(own)[-1]}"
        said = values[key] + ", " if key.startswith(OF_SCHEDULER) and key in values else ""
        values[key] = f"{said}sha256 {_together(own)[:SHOWN]}"
    return RunInputs(values, files, tuple(unknown), unsaid)


def _together(files: Mapping[str, str]) -> str:
    """One digest: that of the file whatever its name is, or of several with their names."""
    if len(files) == 1:
        return next(iter(files.values()))
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _settings(directory: RunDirectory) -> dict[str, str] | None:
    """All values of the resolved scenario; None where it is missing or cannot be read."""
    path = directory.path / SCENARIO
    try:
        document = parse_yaml(read_text(path, YAML_BYTES), str(path))
    except (OSError, LimitError, UnicodeDecodeError, DocumentError):
        return None
    return {key: as_text(value) for key, value in flattened(document.data)}


def _renamed(directory: RunDirectory, settings: Mapping[str, str]) -> Mapping[str, str]:
    """The settings that the file has, under today's keys."""
    path = directory.path / SCENARIO
    document = parse_yaml(read_text(path, YAML_BYTES), str(path))
    with redirect_stderr(StringIO()):
        rename_old_keys(document)
    return {**settings, **{key: as_text(value) for key, value in flattened(document.data)}}


def _as_today(directory: RunDirectory) -> dict[str, str] | None:
    """All values of the scenario as today's version understands it; None if it cannot."""
    try:
        with redirect_stderr(StringIO()):
            text = load(directory.path / SCENARIO).resolved_yaml()
    except BadInputError:
        return None
    return {key: as_text(value) for key, value in flattened(parse_yaml(text, SCENARIO).data)}


def _digests(directory: RunDirectory) -> Digests | None:
    """The digests in the manifest; None if there are none, or it is missing or damaged."""
    try:
        recorded = directory.read_json(MANIFEST).get(KEY)
        return None if recorded is None else decode(dict[str, dict[str, str]], recorded, KEY)
    except (BadInputError, ValueError, AttributeError):
        return None


def _schedulers(summary: Mapping[str, Any]) -> dict[str, str]:
    """The key of each scheduler -> its name, and its options where it has any."""
    found = {}
    for run in summary["runs"]:
        options = run.get("options") or {}
        said = f" {json.dumps(options, sort_keys=True, default=str)}" if options else ""
        found[f"{OF_SCHEDULER}{run['scheduler']}"] = f"{run.get('scheduler_name', run['scheduler'])}{said}"
    return found


def _names_file(key: str) -> bool:
    """Whether ``key`` of a job names a file."""
    last = key.rpartition(".")[2]
    files = (*FORMS, SCHEDULE, ALGORITHM, SHAPE)
    return (".model." in key and last in files) or key.endswith((".requests.trace", ".layer_times"))


def _reading(values: Mapping[str, str], summary: Mapping[str, Any]) -> Iterator[str]:
    """The keys behind which there is a file or the source of a plug-in."""
    for key in values:
        first, last = key.partition(".")[0], key.rpartition(".")[2]
        if (first == "fabric" and last in FILE_KEYS) or (first == "jobs" and _names_file(key)):
            yield key
    if values.get("fabric.kind", next(iter(FABRICS))) not in FABRICS:
        yield "fabric.kind"
    built_in = {scheduler.name for scheduler in SCHEDULERS}
    for run in summary["runs"]:
        if run.get("scheduler_name", run["scheduler"]) not in built_in:
            yield f"{OF_SCHEDULER}{run['scheduler']}"
    for point in GROUPS:
        name = values.get(f"manager.{point}.name", values.get(f"manager.{point}", ""))
        if name and not is_built_in(point, name):
            yield f"manager.{point}"


def as_text(value: object) -> str:
    """A value of a scenario as it is compared and shown."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
