"""``index.html`` of a folder of runs: what ran when, what came of it, and where its report is.

The folder may hold anything, and runs of other people: names are shown as text, a link leads only to a report beside
the page, and an ``index.html`` that is not ours is left alone.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from testbed.errors import BadInputError, TestbedError
from testbed.report.comparison.compared_runs import address, is_sweep
from testbed.report.comparison.page import REPORT
from testbed.report.page import assemble
from testbed.results.run_directory import UNFINISHED, RunDirectory
from topologies.limits import LimitError, one_line, open_regular

INDEX: Final = "index.html"
KIND: Final = "testbed index of runs"
"""In every index that is ours."""
MOST_RUNS: Final = 1_000
"""Runs listed, the newest: a second of reading."""
_LARGEST: Final = 2**24
"""Bytes of an index; one of ours has a tenth of it."""
_SWEEPS: Final = "sweep"
_STAMP: Final = re.compile(r"-([0-9]{4})([0-9]{2})([0-9]{2})-([0-9]{2})([0-9]{2})([0-9]{2})(-[0-9]+)?$")


@dataclass
class _Found:
    runs: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, str]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    count: int = 0


def holds_runs(folder: Path) -> bool:
    """Whether ``folder`` is no run itself, but has runs, or an index of them."""
    if not folder.is_dir() or (folder / "summary.json").exists() or (folder / UNFINISHED).exists() or is_sweep(folder):
        return False
    return is_ours(folder / INDEX) or any((child / "summary.json").is_file() for child in _children(folder))


def is_ours(page: Path) -> bool:
    """Whether ``page`` is an index that this module wrote."""
    try:
        with open_regular(page, _LARGEST) as file:
            return KIND.encode() in file.read()
    except (OSError, LimitError):
        return False


def update(folder: Path) -> Path:
    """Write ``index.html`` in ``folder`` from what is there now; returns its path.

    Raises ``BadInputError`` if there is an ``index.html`` that is not ours, ``RunFailedError`` if it cannot be written.
    """
    target = folder / INDEX
    if os.path.lexists(target) and not is_ours(target):
        raise BadInputError(f"{target}: is no index of runs; move it away to have one here")
    found = _scan(folder)
    document = {
        "kind": KIND,
        "runs": found.runs,
        "comparisons": found.comparisons,
        "unreadable": found.unreadable,
    }
    name = one_line(folder.resolve().name)
    text = assemble.page(f"Runs in {name}", _headline(found), document, "runs_page.js", libraries=())
    return RunDirectory(folder).write_text(INDEX, text)


def update_or_say(folder: Path) -> None:
    """Update the index; where it cannot be, say so on standard error: what ran is complete without it."""
    try:
        update(folder)
    except TestbedError as error:
        print(f"not listed in an index of runs: {error}", file=sys.stderr)


def _headline(found: _Found) -> str:
    shown = f"{found.count} {'run' if found.count == 1 else 'runs'}"
    return f"{shown}, the newest {MOST_RUNS} of them below" if found.count > MOST_RUNS else shown


def _scan(folder: Path) -> _Found:
    found = _Found()
    children = list(_children(folder))
    for child in [*children, *_children(folder / _SWEEPS)]:
        if is_sweep(child):
            found.comparisons.append(_other(folder, child, "sweep"))
        elif child in children and not (child / "summary.json").exists() and (child / REPORT).is_file():
            found.comparisons.append(_other(folder, child, "comparison"))
    runs = [child for child in children if (child / "summary.json").exists() or (child / UNFINISHED).exists()]
    found.count = len(runs)
    dated = sorted(((_time(child), child) for child in runs), reverse=True)
    for when, child in dated[:MOST_RUNS]:
        try:
            found.runs.append(_run(child, when))
        except BadInputError as error:
            found.unreadable.append(str(error).replace(str(folder) + os.sep, "", 1))
    return found


def _children(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    except OSError:
        return


def _run(child: Path, when: str) -> dict[str, Any]:
    summary = RunDirectory.open(child).read_summary()
    verdicts = Counter(run["fidelity"]["verdict"] for run in summary["runs"])
    return {
        "directory": one_line(child.name),
        "report": _report(child, child.name),
        "scenario": summary["scenario"],
        "time": when,
        "engine": summary["engine"],
        "seed": summary["seed"],
        "schedulers": [run["scheduler"] for run in summary["runs"]],
        "utilization": [run["gpu_utilization"] for run in summary["runs"]],
        "verdicts": _verdicts(verdicts),
    }


def _verdicts(verdicts: Counter[str]) -> str:
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "-"


def _other(folder: Path, child: Path, what: str) -> dict[str, str]:
    relative = os.path.relpath(child, folder)
    return {"directory": one_line(relative), "report": _report(child, relative), "what": what}


def _report(child: Path, relative: str) -> str:
    return address(f"{relative}/{REPORT}") if (child / REPORT).is_file() else ""


def _time(child: Path) -> str:
    """When the run began, as its name says; else when its directory changed last."""
    match = _STAMP.search(child.name)
    if match:
        year, month, day, hour, minute, second = match.groups()[:6]
        return f"{year}-{month}-{day} {hour}:{minute}:{second}"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(child.stat().st_mtime))
