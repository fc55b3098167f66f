"""The formats by name, and which one a file or folder is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from topologies.table import SEPARATORS, TraceError, cells_of, first_line, partly_otherwise, written_otherwise
from workloads.traces import acme, alibaba, helios, itp, lingjun, philly, testbed_csv
from workloads.traces.simulators import gavel, muri, pollux, tiresias
from workloads.traces.trace import Trace

Reader = Callable[[Path], Trace]


@dataclass(frozen=True, slots=True)
class _Format:
    """``columns`` identify a file, ``files`` a folder; ``looked_for`` describes them to the user."""

    reader: Reader
    columns: tuple[str, ...]
    files: tuple[str, ...]
    looked_for: str


_FORMATS: Final[Mapping[str, _Format]] = {
    "lingjun": _Format(lingjun.read, (), ("job.csv", "worker.csv"), "a folder with job.csv and worker.csv"),
    "alibaba-v2020": _Format(
        alibaba.read_v2020, alibaba.TASKS, (alibaba.TASK_FILE,), f"a folder with {alibaba.TASK_FILE}"
    ),
    "alibaba-v2023": _Format(alibaba.read_v2023, alibaba.PODS, (), "columns num_gpu, gpu_milli, pod_phase"),
    "acme": _Format(acme.read, acme.REQUIRED, (), "columns job_id, type, state, gpu_time"),
    "helios": _Format(helios.read, helios.REQUIRED, (), "columns job_id, vc, state, node_num"),
    "philly": _Format(philly.read, philly.REQUIRED, (), "a JSON list, or columns timestamp, num_gpus, cluster"),
    "itp": _Format(itp.read, itp.REQUIRED, (), "columns job_id, submission_time, num_gpu, or a folder of such files"),
    "muri": _Format(muri.read, muri.REQUIRED, (), "columns job_id, num_gpu, iterations, iteration_time"),
    "tiresias": _Format(tiresias.read, tiresias.REQUIRED, (), "columns job_id, num_gpu, iterations, interval"),
    "pollux": _Format(pollux.read, pollux.REQUIRED, (), "columns name, application, num_replicas, batch_size"),
    "gavel": _Format(gavel.read, (), (), "9 or 10 cells a line, separated by tabs"),
    "testbed": _Format(testbed_csv.read, testbed_csv.REQUIRED, (), f"columns {', '.join(testbed_csv.REQUIRED)}"),
}

FORMATS: Final[Mapping[str, Reader]] = MappingProxyType({name: item.reader for name, item in _FORMATS.items()})
"""Name of a format -> its reader."""


def read_trace(path: Path | str, format: str | None = None) -> Trace:
    """Read a trace in ``format``, by default the one that its header or its folder's files identify.

    Raises :class:`TraceError` if the file is damaged or of no known format, ``ValueError`` for an unknown ``format``.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format '{format}', expected one of: {', '.join(FORMATS)}")
    return FORMATS[recognise(Path(path)) if format is None else format](Path(path))


def recognise(path: Path) -> str:
    """Return the name of the format of a file or folder; raises :class:`TraceError` with what was looked for."""
    if path.is_dir():
        return _folder(path)
    if philly.begins_like_json(path):
        return "philly"
    if gavel.looks_like(path):
        return "gavel"
    header = first_line(path)
    if path.name == alibaba.TASK_FILE:
        return "alibaba-v2020"
    for name, item in _FORMATS.items():
        if item.columns and set(item.columns) <= set(header):
            return name
    for name, item in _FORMATS.items():
        if item.columns and (why := written_otherwise(header, item.columns)):
            what = f"the columns of the format {name}, but {why}"
            raise TraceError(str(path), 1, what, f"{', '.join(item.columns)}, separated by commas")
    shown = ", ".join(header[:8]) + (", .." if len(header) > 8 else "")
    raise TraceError(str(path), 1, f"the columns '{shown}' are of no known format{_nearest(header)}", _expected())


def _nearest(header: Sequence[str]) -> str:
    """What is other about ``header``: its separator, and what the format nearest to it lacks; empty if none is near.

    Near is a format with at least half of its columns there, in any capitals.
    """
    cells, separator = cells_of(header)
    present = {each.lower() for each in cells}
    known = {name: item.columns for name, item in _FORMATS.items() if item.columns}
    shares = {name: sum(each.lower() in present for each in own) / len(own) for name, own in known.items()}
    name = max(shares, key=lambda each: shares[each])
    if shares[name] < 0.5:
        return f" (cells are separated by {SEPARATORS[separator]}, expected commas)" if separator else ""
    why, missing = partly_otherwise(header, known[name])
    return f" (for {name} it lacks {', '.join(missing)}{f'; {why}' if why else ''})"


def _folder(path: Path) -> str:
    try:
        present = {file.name for file in path.iterdir()}
    except OSError as error:
        raise TraceError(str(path), None, f"cannot be read ({error.strerror})", _expected()) from None
    for name, item in _FORMATS.items():
        if item.files and set(item.files) <= present:
            return name
    tables = sorted(path.glob("*.csv"))
    if any(_is_of_itp(first_line(file)) for file in tables):
        return "itp"  # its reader says what is wrong with another file, or with the header
    near = _nearest(first_line(tables[0])) if tables else ""
    what = f"this folder is of no known format{f'; {tables[0].name}{near}' if near else ''}"
    raise TraceError(str(path), None, what, _expected())


def _is_of_itp(header: Sequence[str]) -> bool:
    return set(itp.REQUIRED) <= set(header) or written_otherwise(header, itp.REQUIRED) != ""


def _expected() -> str:
    return "one of: " + "; ".join(f"{name} ({item.looked_for})" for name, item in _FORMATS.items())
