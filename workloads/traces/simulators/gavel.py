"""Gavel: jobs of its simulator (Narayanan et al., OSDI 2020; ``stanford-futuredata/gavel``, MIT).

A trace has a line per job and no header; its cells are separated by tabs. It says how many steps a job has. How long
they take is in ``simulation_throughputs.json``, steps per second by GPU type and job type; Gavel keeps it in the folder
``scheduler``, above its traces. Recorded durations are those on V100 GPUs, on one server where both are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from topologies.limits import JSON_TRACE_BYTES, TRACE_NUMBER, LimitError, read_bytes
from topologies.table import Row, TraceError, lines_of, reading
from workloads.traces.gathering import NO_END, Gathering, bounded
from workloads.traces.trace import Trace

THROUGHPUTS: Final = "simulation_throughputs.json"
GPU_TYPE: Final = "v100"
COLUMNS: Final = (
    "job_type",
    "command",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "priority_weight",
    "SLO",
    "arrival_time",
)
OLDER: Final = (*COLUMNS[:2], "working_directory", *COLUMNS[2:])
"""With the folder in a column of its own."""
_GPUS: Final = re.compile("[0-9]{1,15}")
_LEVELS: Final = 6
"""How many folders above the trace to look for the throughputs."""


def looks_like(path: Path) -> bool:
    """Whether the first line has as many cells, separated by tabs, as a trace of Gavel's."""
    with reading(path) as file:
        return len(next(lines_of(file, str(path)), "").split("\t")) in (len(COLUMNS), len(OLDER))


def read(path: Path) -> Trace:
    """Read a ``.trace``; :class:`TraceError` if no throughputs are found in the folders above it."""
    found, speeds = Gathering(path), _throughputs(path)
    for row in _rows(path):
        arrived, steps, gpus = row.number("arrival_time"), row.number("total_steps"), row.count("scale_factor")
        job_type = row.text("job_type")
        speed = speeds.get((job_type, gpus or 0))
        if gpus and speed is None:
            row.fail(f"{THROUGHPUTS} has no speed of {job_type!r} on {gpus} {GPU_TYPE} GPUs", "one")
        if speed == 0:
            found.skip(f"{NO_END}: cannot run on {GPU_TYPE}")
            continue
        duration_s = None if steps is None or not speed else bounded(row, "total_steps / speed", steps / speed)
        found.add(f"gavel-{row.line}", arrived, duration_s, gpus, model=job_type)
    found.notes.append(f"durations are steps over the measured speed on {GPU_TYPE} GPUs ({THROUGHPUTS})")
    return found.trace(f"gavel-{path.stem}")


def _rows(path: Path) -> Iterator[Row]:
    with reading(path) as file:
        for number, line in enumerate(lines_of(file, str(path)), 1):
            cells = line.rstrip("\r\n").split("\t")
            if cells != [""]:
                yield Row(str(path), number, _columns(path, number, cells), cells)


def _columns(path: Path, line: int, cells: Sequence[str]) -> Mapping[str, int]:
    for names in (COLUMNS, OLDER):
        if len(names) == len(cells):
            return {name: place for place, name in enumerate(names)}
    raise TraceError(
        str(path), line, f"the line has {len(cells)} cells", f"{len(COLUMNS)}, separated by tabs: {', '.join(COLUMNS)}"
    )


def _throughputs(path: Path) -> dict[tuple[str, int], float]:
    """(job type, GPUs) -> steps per second."""
    folders = list(path.absolute().parents)[:_LEVELS]
    file = next((folder / THROUGHPUTS for folder in folders if (folder / THROUGHPUTS).is_file()), None)
    if file is None:
        raise TraceError(str(path), None, "the trace says steps, not seconds", f"{THROUGHPUTS} in a folder above it")
    speeds: dict[tuple[str, int], float] = {}
    for name, entry in _of_type(file).items():
        job_type, gpus = _key(file, name)
        speeds[job_type, gpus] = _alone(file, name, entry)
    return speeds


def _alone(file: Path, name: str, entry: object) -> float:
    """Steps per second of a job that shares its GPUs with none."""
    speed = entry.get("null") if isinstance(entry, dict) else None
    if isinstance(speed, bool) or not isinstance(speed, int | float):
        raise TraceError(str(file), None, f"{name!r}: no speed alone", "'null': steps per second")
    if not 0 <= speed <= TRACE_NUMBER:
        raise TraceError(
            str(file), None, f"{name!r}: the speed alone is {speed}", f"0 to {TRACE_NUMBER:g} steps per second"
        )
    return float(speed)


def _of_type(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bytes(file, JSON_TRACE_BYTES))
    except json.JSONDecodeError as error:
        raise TraceError(
            str(file), error.lineno, f"damaged JSON ({error.msg})", "steps per second by job type"
        ) from None
    except (UnicodeDecodeError, RecursionError, LimitError, OSError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise TraceError(str(file), None, f"cannot be read ({why})", "steps per second by job type") from None
    except ValueError:
        what = "damaged JSON (a number of too many digits)"
        raise TraceError(str(file), None, what, "steps per second by job type") from None
    of_type = content.get(GPU_TYPE) if isinstance(content, dict) else None
    if not isinstance(of_type, dict):
        raise TraceError(str(file), None, f"no speeds on {GPU_TYPE}", f"an object '{GPU_TYPE}'")
    return of_type


def _key(file: Path, name: str) -> tuple[str, int]:
    """``('ResNet-18 (batch size 32)', 2)`` as a pair."""
    job_type, _, gpus = name.strip("()").rpartition(",")
    if not job_type or not _GPUS.fullmatch(gpus.strip()):
        raise TraceError(str(file), None, f"the job type {name!r}", "one such as ('ResNet-18 (batch size 32)', 1)")
    return job_type.strip().strip("'\""), int(gpus)
