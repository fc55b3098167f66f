"""Kineto traces of the PyTorch profiler (Chrome JSON, gzipped or not): kernels that communicate between others.

A step is what lies between two ``ProfilerStep#`` marks, the whole trace where there are none; the median step counts.
The GPU computes while a kernel runs that does not communicate (:mod:`workloads.imported.kernel_families`), on whichever
stream. What of a kernel that communicates lies beside compute is its overlap. ``Group size`` and the sizes of the
messages are in the arguments of each kernel; those of libraries that PyTorch does not launch have none, and are left
out with their share of the time.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from topologies.limits import WORKLOAD_BYTES, WORKLOAD_ROWS, LimitError, line_of_damage, open_regular
from topologies.units import format_size
from workloads.imported.errors import WorkloadFileError
from workloads.imported.kernel_families import COPY, family_of, streams_of
from workloads.imported.workload import (
    Collective,
    CollectiveKind,
    Coverage,
    GroupKind,
    ImportedWorkload,
    Parallelism,
    Stretch,
)

FORM: Final = "kineto"
EXPECTED: Final = "a trace of the PyTorch profiler"
KINDS: Final[Mapping[str, CollectiveKind]] = {
    "allreduce": "allreduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
}
_POINT_TO_POINT: Final[Mapping[str, CollectiveKind]] = {"send": "point-to-point", "recv": "point-to-point"}
MOST_LINES: Final = 5
"""So many kernels that may be communication are named, those that take longest first."""
ELEMENT_BYTES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("half", "short", "bfloat16", "float16", "int16"), 2),
    **dict.fromkeys(("int", "float", "float32", "int32"), 4),
    **dict.fromkeys(("long", "double", "float64", "int64"), 8),
}


@dataclass(frozen=True, slots=True)
class _Kernel:
    name: str
    start_s: float
    end_s: float
    arguments: Mapping[str, Any]
    family: str
    """Library of a kernel that communicates; empty for compute."""

    @property
    def communicates(self) -> bool:
        return bool(self.family)

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    @property
    def shown(self) -> str:
        """Its name as messages show it."""
        return self.name.removeprefix("void ").partition("(")[0].partition("<")[0][:60]


def read(path: Path, gpus: int | None = None, group: GroupKind | None = None) -> ImportedWorkload:
    """Return the iteration of a trace on ``gpus`` GPUs, by default the world size that it names.

    ``group``: the ranks that take part in collectives of fewer ranks than all. Raises :class:`WorkloadFileError`.
    """
    file = str(path)
    document = _document(path)
    said = _world_size(document)
    if said is None and gpus is None:
        raise WorkloadFileError(file, None, "no world size", "gpus, the number of GPUs of the job")
    if said is not None and gpus not in (None, said):
        raise WorkloadFileError(file, None, f"world size {said} for {gpus} GPUs", "the same number")
    parallelism = Parallelism(gpus or said or 1)
    events = document.get("traceEvents")
    if not isinstance(events, list) or len(events) > 50 * WORKLOAD_ROWS:
        raise WorkloadFileError(file, None, "no list traceEvents, or too long a one", EXPECTED)
    kernels = sorted(_kernels(events), key=lambda kernel: kernel.start_s)
    if not kernels:
        raise WorkloadFileError(file, None, "no kernel", "events of category kernel")
    begins, ends, steps = _step(events, kernels)
    mine = [kernel for kernel in kernels if begins <= kernel.start_s < ends]
    stretches, odd, coverage = _stretches(file, mine, parallelism, group, _rank(document))
    if coverage.left_out and not coverage.kept:
        what = f"none of {coverage.left_out} kernels that communicate has a size ({odd[0].partition(': ')[0]})"
        raise WorkloadFileError(
            file, None, what, "Collective name, dtype and In/Out msg nelems in the arguments of some"
        )
    notes = [f"{len(kernels)} kernels, {sum(kernel.communicates for kernel in kernels)} communicate; {steps}"]
    notes += [*_copies(events), *_beside_communication(mine)]
    return ImportedWorkload(FORM, file, parallelism, tuple(stretches), tuple(odd), tuple(notes), coverage)


def _document(path: Path) -> Mapping[str, Any]:
    file = str(path)
    try:
        with open_regular(path, WORKLOAD_BYTES) as opened:
            packed = opened.read(2) == b"\x1f\x8b"
            opened.seek(0)
            data = gzip.GzipFile(fileobj=opened).read(WORKLOAD_BYTES + 1) if packed else opened.read(WORKLOAD_BYTES + 1)
        if len(data) > WORKLOAD_BYTES:
            raise WorkloadFileError(file, None, "too large once unpacked", f"at most {WORKLOAD_BYTES} bytes")
        found = json.loads(data, parse_int=_whole)
    except LimitError as error:
        raise WorkloadFileError(file, None, str(error), f"a file of at most {WORKLOAD_BYTES} bytes") from None
    except json.JSONDecodeError as error:
        raise WorkloadFileError(file, error.lineno, f"not JSON ({error.msg})", EXPECTED) from None
    except UnicodeDecodeError as error:
        raise WorkloadFileError(file, line_of_damage(error), "not UTF-8 text", EXPECTED) from None
    except RecursionError:
        raise WorkloadFileError(file, 1, "too deeply nested", EXPECTED) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise WorkloadFileError(file, None, f"damaged ({error})", EXPECTED) from None
    except OSError as error:
        raise WorkloadFileError(file, None, f"cannot be read ({error.strerror})", EXPECTED) from None
    if not isinstance(found, dict):
        raise WorkloadFileError(file, 1, "no JSON object", EXPECTED)
    return found


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 19 else math.inf


def _world_size(document: Mapping[str, Any]) -> int | None:
    told = document.get("distributedInfo")
    size = told.get("world_size") if isinstance(told, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 10**6 else None


def _rank(document: Mapping[str, Any]) -> int | None:
    told = document.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else None


def _kernels(events: Sequence[Any]) -> Iterator[_Kernel]:
    for event in events:
        if isinstance(event, dict) and event.get("ph") == "X" and str(event.get("cat", "")).lower() == "kernel":
            start, duration, told = _number(event.get("ts")), _number(event.get("dur", 0)), event.get("args")
            if start is not None and duration is not None and duration >= 0:
                name, known = str(event.get("name", "")), told if isinstance(told, dict) else {}
                yield _Kernel(name, start * 1e-6, (start + duration) * 1e-6, known, family_of(name, known))


def _copies(events: Sequence[Any]) -> Iterator[str]:
    """A line on copies from GPU to GPU: they stay inside a host, and are neither compute nor on the network."""
    copies = [
        event.get("args")
        for event in events
        if isinstance(event, dict) and event.get("ph") == "X" and COPY.match(str(event.get("name", "")))
    ]
    if copies:
        sizes = (_number(each.get("bytes")) for each in copies if isinstance(each, dict))
        total = format_size(sum(size for size in sizes if size is not None))
        yield f"{len(copies)} copies between GPUs ({total}) stay inside the host: they are neither compute nor messages"


def _beside_communication(kernels: Sequence[_Kernel]) -> Iterator[str]:
    """A line for each kernel that counts as compute on a stream whose other kernels communicate."""
    streams = streams_of((kernel.arguments.get("stream"), kernel.communicates) for kernel in kernels)
    seconds: dict[str, list[float]] = {}
    for kernel in kernels:
        if not kernel.communicates and kernel.arguments.get("stream") in streams:
            seconds.setdefault(kernel.shown, []).append(kernel.seconds)
    whole_s = sum(kernel.seconds for kernel in kernels)
    for name, those in sorted(seconds.items(), key=lambda each: -sum(each[1]))[:MOST_LINES]:
        share = _percent(sum(those), whole_s)
        counted = f"{len(those)} kernels {name} ({share} of the kernels' time)"
        yield f"{counted} count as compute, on a stream of communication"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole > 0 else 0:.3g} %"


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _step(events: Sequence[Any], kernels: Sequence[_Kernel]) -> tuple[float, float, str]:
    """When the median step begins and ends, and what to say of it."""
    begins: dict[str, float] = {}
    for event in events:
        name = str(event.get("name", "")) if isinstance(event, dict) else ""
        start = _number(event.get("ts")) if name.startswith("ProfilerStep#") else None
        if start is not None:
            begins[name] = min(begins.get(name, math.inf), start * 1e-6)
    starts = sorted(begins.values())
    end = max(kernel.end_s for kernel in kernels)
    if len(starts) < 2:
        return kernels[0].start_s, math.inf, "no marks of steps: the whole trace is an iteration"
    spans = sorted(zip(starts, [*starts[1:], max(end, starts[-1])], strict=True), key=lambda span: span[1] - span[0])
    first, last = spans[len(spans) // 2]
    return first, last, f"the median of {len(starts)} steps"


def _stretches(
    file: str, kernels: Sequence[_Kernel], parallelism: Parallelism, group: GroupKind | None, rank: int | None
) -> tuple[list[Stretch], list[str], Coverage]:
    """Compute up to each kernel that communicates and beside it, what is left out, and how much that is."""
    computes = _union([(kernel.start_s, kernel.end_s) for kernel in kernels if not kernel.communicates])
    found: list[Stretch] = []
    odd: dict[tuple[str, str], list[float]] = {}
    kept_s = 0.0
    counted_to = -math.inf
    for kernel in kernels:
        if not kernel.communicates:
            continue
        try:
            collective = _collective(file, kernel, parallelism, group, rank)
        except _NoSizeError:
            odd.setdefault((kernel.shown, kernel.family), []).append(kernel.seconds)
            continue
        if collective is None:
            continue
        kept_s += kernel.seconds
        before = _within(computes, counted_to, kernel.start_s)
        beside = _within(computes, max(counted_to, kernel.start_s), kernel.end_s)
        counted_to = max(counted_to, kernel.end_s)
        found.append(Stretch(before + beside, collective, beside))
    rest = _within(computes, counted_to, math.inf)
    if rest > 0 or not found:
        found.append(Stretch(rest))
    kept = sum(stretch.collective is not None for stretch in found)
    whole_s = sum(kernel.seconds for kernel in kernels)
    lines = [
        f"{len(those)} kernels {name} ({family}, {_percent(sum(those), whole_s)} of the kernels' time): "
        "no collective of known size"
        for (name, family), those in sorted(odd.items())
    ]
    left_out = [seconds for those in odd.values() for seconds in those]
    return found, lines, Coverage(kept, len(left_out), kept_s, sum(left_out))


def _union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _within(spans: Sequence[tuple[float, float]], begins: float, ends: float) -> float:
    """Seconds of ``spans``, which do not overlap, from ``begins`` to ``ends``."""
    return sum(max(0.0, min(end, ends) - max(start, begins)) for start, end in spans)


class _NoSizeError(Exception):
    """A kernel communicates, and the trace does not say what or how much."""


def _collective(
    file: str, kernel: _Kernel, parallelism: Parallelism, group: GroupKind | None, rank: int | None
) -> Collective | None:
    """What a kernel carries out, None if it sends nothing; :class:`_NoSizeError` where the trace leaves it open."""
    told = kernel.arguments
    name = str(told.get("Collective name", kernel.name)).lower().replace("_", "")
    kind = _POINT_TO_POINT.get(name) or next((its for word, its in KINDS.items() if word in name), None)
    element = ELEMENT_BYTES.get(str(told.get("dtype", "")).lower())
    sent, received = _number(told.get("In msg nelems")), _number(told.get("Out msg nelems"))
    if kind is None or element is None or sent is None or received is None or sent < 0 or received < 0:
        raise _NoSizeError
    size = element * (received if kind in ("all-gather", "broadcast") else sent)
    ranks = _number(told.get("Group size"))
    if ranks is not None and ranks < 2:
        raise _NoSizeError
    if size <= 0 or name == "recv":  # what is received is what a peer sends
        return None
    peer = _number(told.get("Dst Rank"))
    returning = kind == "point-to-point" and peer is not None and rank is not None and peer < rank
    if ranks in (None, float(parallelism.gpus)):
        return Collective(kind, "all", size, returning=returning) if parallelism.gpus > 1 else None
    if group is None:
        what = f"{kernel.name[:40]} is a collective of {ranks:g} of {parallelism.gpus} ranks"
        raise WorkloadFileError(file, None, what, "group, the ranks that take part")
    return Collective(kind, group, size, returning=returning)
