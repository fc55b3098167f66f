"""SHA-256 of everything that a run reads beside its scenario: files of fabrics and jobs, and the source of plug-ins.

They are in ``manifest.json``, so that runs are only averaged where they had the same input
(:mod:`testbed.report.comparison.inputs`), and they decide whether a point of a sweep is still good.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from controller.schedulers import registry as schedulers
from testbed.experiment.experiment import Managed
from testbed.scenario import Scenario
from testbed.scenario.network.fabrics import FILE_KEYS, GENERATORS
from topologies.limits import LimitError, open_regular
from topologies.registry import BUILT_IN
from workloads.imported.chakra import files_of
from workloads.imported.errors import WorkloadFileError
from workloads.managers import registry as managers
from workloads.managers.registry import GROUPS

KEY: Final = "inputs_sha256"
"""Of ``manifest.json``: key of the scenario -> name of a file -> its SHA-256."""

Files = Mapping[str, Path]
"""Name of a file, relative to its folder or package -> where it is."""


def digests_of(scenario: Scenario, managed: Managed | None = None) -> dict[str, dict[str, str]]:
    """Return the key of ``scenario`` that names an input -> name of each of its files -> SHA-256.

    ``managed`` has the parts of its cluster manager. Keys of the scenario's values are those of ``--set``, with jobs
    and schedulers by name. A file that cannot be read any more is left out: nothing is known about it.
    """
    known: dict[Path, str] = {}
    found: dict[str, dict[str, str]] = {}
    for key, files in (*_fabric(scenario), *_jobs(scenario), *_plugins(scenario, managed)):
        digests = {name: digest for name, path in sorted(files.items()) if (digest := _digest(path, known))}
        if digests:
            found[key] = digests
    return found


def _fabric(scenario: Scenario) -> Iterator[tuple[str, Files]]:
    for key, value in scenario.fabric:
        if key in FILE_KEYS and isinstance(value, str):
            yield f"fabric.{key}", _files(Path(value))


def _jobs(scenario: Scenario) -> Iterator[tuple[str, Files]]:
    for job in scenario.jobs:
        if not isinstance(job.model, str):
            for form, file in job.model.files.items():
                yield f"jobs.{job.name}.model.{form}", _files(Path(file))
        if words := [Path(word) for word in job.command or () if _is_file(word)]:
            yield f"jobs.{job.name}.command", {word.name: word for word in words}


def _plugins(scenario: Scenario, managed: Managed | None) -> Iterator[tuple[str, Files]]:
    kind = str(dict(scenario.fabric)["kind"])
    if kind not in BUILT_IN:
        yield "fabric.kind", sources_of(GENERATORS[kind].__module__.partition(".")[0])
    for choice in scenario.choices:
        if (code := schedulers.code_of(choice.name)) is not None:
            yield f"schedulers.{choice.label}", sources_of(code.package)
    for point in GROUPS if managed is not None else ():
        if (part := managers.code_of(point, getattr(managed, point))) is not None:
            yield f"manager.{point}", sources_of(part.package)


def sources_of(package: str) -> dict[str, Path]:
    """Return the Python files of ``package`` by their paths in it, or the one file of a module; none if unknown."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return {}
    if spec is None:
        return {}
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    found = {str(file.relative_to(folder)): file for folder in folders for file in folder.rglob("*.py")}
    return found or ({Path(spec.origin).name: Path(spec.origin)} if spec.origin else {})


def _files(path: Path) -> dict[str, Path]:
    """The file itself, the traces of a folder of Chakra, or all files of another folder."""
    if not path.is_dir():
        return {path.name: path}
    try:
        return {file.name: file for file in files_of(path)}
    except WorkloadFileError:
        return {str(file.relative_to(path)): file for file in path.rglob("*") if file.is_file()}


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def _digest(path: Path, known: dict[Path, str]) -> str:
    """SHA-256 of the file, read once; empty if it cannot be read."""
    if path not in known:
        try:
            with open_regular(path, math.inf) as file:
                known[path] = hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, LimitError):
            known[path] = ""
    return known[path]
