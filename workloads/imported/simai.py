"""SimAI workloads: the text files of AICB (Wang et al., NSDI'25), a row per layer.

Line 1 has the kind of workload and the sizes of the groups, line 2 the number of rows. A row has twelve columns: name,
dependency, then for forward pass, input gradient and weight gradient the compute in ns, a collective and its bytes, and
the time of the update. An iteration goes forward through the rows and back: a layer computes its input gradient and
waits for that collective, then its weight gradient, whose collective goes on in the background.

Which ranks take part follows from the column and the suffix: without one, the tensor-parallel group in the first two
columns and the data-parallel one in the third; ``_EP`` the experts', ``_DP_EP`` those that hold the same experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from topologies.limits import WORKLOAD_ROWS
from workloads.imported.errors import WorkloadFileError
from workloads.imported.text_file import read_workload_text
from workloads.imported.workload import (
    Collective,
    CollectiveKind,
    Coverage,
    GroupKind,
    ImportedWorkload,
    Parallelism,
    Stretch,
)

FORM: Final = "simai"
EXPECTED: Final = "a SimAI workload"
POLICIES: Final = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER")
KINDS: Final[Mapping[str, CollectiveKind]] = {
    "ALLREDUCE": "allreduce",
    "ALLGATHER": "all-gather",
    "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "alltoall",
    "BROADCAST": "broadcast",
}
SUFFIXES: Final[Mapping[str, GroupKind]] = {"_DP_EP": "data-expert", "_EP": "expert"}
COLUMNS: Final = ("forward", "input gradient", "weight gradient")
_MOST: Final = 10**18
"""Of a whole number in a file."""


@dataclass(frozen=True, slots=True)
class _Operation:
    """Compute and collective of one column of a row."""

    compute_s: float
    collective: Collective | None


@dataclass(frozen=True, slots=True)
class _Row:
    operations: tuple[_Operation, _Operation, _Operation]
    update_ns: int


def read(path: Path, gpus: int | None = None, group: GroupKind | None = None) -> ImportedWorkload:
    """Return the iteration of a SimAI workload on ``gpus`` GPUs, those of the header if it has a total.

    ``group``: which ranks take part in collectives whose own group has one rank only. Raises
    :class:`WorkloadFileError` naming the line that is wrong, or that leaves one of the two open.
    """
    text = read_workload_text(path, EXPECTED)
    return _Reader(str(path), text.splitlines(), gpus, group).workload()


class _Reader:
    def __init__(self, file: str, lines: Sequence[str], gpus: int | None, group: GroupKind | None) -> None:
        self._file = file
        self._lines = lines
        self._group = group
        self._without_bytes = 0
        self._header = self._sizes()
        self._parallelism = self._checked(gpus)

    def workload(self) -> ImportedWorkload:
        rows = list(self._rows())
        stretches = [self._stretch(row.operations[0]) for row in rows]
        stretches += self._pipeline(returning=False)
        for row in reversed(rows):
            stretches += [self._stretch(row.operations[1]), self._background(row.operations[2])]
        stretches += self._pipeline(returning=True)
        update_s = sum(row.update_ns for row in rows) * 1e-9
        left_out = []
        kept = sum(stretch.collective is not None for stretch in stretches)
        if self._without_bytes and not kept:
            raise self._error(
                3, f"none of {self._without_bytes} collectives has bytes", "bytes for some, or NONE for all"
            )
        if self._without_bytes:
            left_out.append(f"{self._without_bytes} collectives of 0 bytes")
        if update_s > 0:
            left_out.append(f"update times of {len(rows)} rows, {update_s:g} s together: part of no compute column")
        if self._parallelism.pipeline > 1:
            left_out.append("the pipeline's bubble: every stage computes what the rows say, at the same time")
            left_out.append("overlap of what stages pass on with compute: they pass it on after the phases it follows")
        if self._header.get("checkpoints"):
            left_out.append(f"recomputation from {self._header['checkpoints']} checkpoints")
        coverage = Coverage(kept, self._without_bytes)
        return ImportedWorkload(
            FORM, self._file, self._parallelism, tuple(stretches), tuple(left_out), self._notes(), coverage
        )

    def _notes(self) -> tuple[str, ...]:
        background = (
            "collectives of weight gradients go on beside later phases; the iteration ends with the last of them"
        )
        return (background,) if self._group is None else (background, f"groups of one rank became group {self._group}")

    def _error(self, line: int | None, what: str, expected: str) -> WorkloadFileError:
        return WorkloadFileError(self._file, line, what, expected)

    def _sizes(self) -> dict[str, int]:
        """The whole numbers of the header by their keys."""
        words = self._lines[0].split() if self._lines else []
        if not words or words[0] not in POLICIES:
            raise self._error(1, f"the workload is {(words or [''])[0]!r}", " or ".join(POLICIES))
        found: dict[str, int] = {}
        for key, value in pairwise(words[1:]):
            name = key.rstrip(":")
            if name.isidentifier() and not name.isdigit():
                if not _is_whole(value):
                    raise self._error(1, f"{name} is {value!r}", "a whole number")
                found[name] = int(value)
        if "model_parallel_NPU_group" not in found:
            raise self._error(1, "no model_parallel_NPU_group", "the size of tensor-parallel groups")
        return found

    def _checked(self, gpus: int | None) -> Parallelism:
        said = self._header.get("all_gpus")
        if said is None and gpus is None:
            raise self._error(1, "the header has no all_gpus", "gpus, the number of GPUs of the job")
        if said is not None and gpus is not None and said != gpus:
            raise self._error(1, f"the header says all_gpus: {said} and the job has {gpus} GPUs", "the same number")
        try:
            total = gpus if said is None else said
            return Parallelism(
                total or 0,
                self._header["model_parallel_NPU_group"],
                self._header.get("ep", 1),
                self._header.get("pp", 1),
            )
        except ValueError as error:
            what, _, expected = str(error).partition(", expected ")
            raise self._error(1, what, expected) from None

    def _rows(self) -> Iterator[_Row]:
        count = self._lines[1].strip() if len(self._lines) > 1 else ""
        if not _is_whole(count):
            raise self._error(2, f"the number of rows is {count!r}", "a whole number")
        lines = [(number, line.split()) for number, line in enumerate(self._lines[2:], 3) if line.strip()]
        if len(lines) != int(count):
            raise self._error(2, f"{int(count)} rows are announced and {len(lines)} follow", "as many as announced")
        if len(lines) > WORKLOAD_ROWS:
            raise self._error(2, f"{len(lines)} rows", f"at most {WORKLOAD_ROWS}")
        return (self._row(number, words) for number, words in lines)

    def _row(self, number: int, words: Sequence[str]) -> _Row:
        if len(words) != 12:
            raise self._error(number, f"{len(words)} columns", "12")
        first, second, third = (
            self._operation(number, column, words[3 * place + 2 : 3 * place + 5])
            for place, column in enumerate(COLUMNS)
        )
        return _Row((first, second, third), self._whole(number, "update time", words[11]))

    def _whole(self, number: int, what: str, word: str) -> int:
        if not _is_whole(word):
            raise self._error(number, f"{what} is {word!r}", "a whole number of at least 0")
        return int(word)

    def _operation(self, number: int, column: str, words: Sequence[str]) -> _Operation:
        compute_s = self._whole(number, f"compute of the {column}", words[0]) * 1e-9
        size = self._whole(number, f"bytes of the {column}", words[2])
        name = words[1]
        if name == "NONE":
            return _Operation(compute_s, None)
        suffix = next((each for each in SUFFIXES if name.endswith(each)), "")
        kind = KINDS.get(name.removesuffix(suffix))
        if kind is None:
            raise self._error(number, f"unknown collective {name!r}", f"NONE, or {', '.join(KINDS)} with _EP or _DP_EP")
        group: GroupKind = SUFFIXES[suffix] if suffix else "data" if column == COLUMNS[2] else "tensor"
        if size == 0:
            self._without_bytes += 1
            return _Operation(compute_s, None)
        if self._parallelism.size(group) == 1:
            if self._group is None:
                what = f"{name} of {size} bytes of the {column} is of the {group} group, which has one rank"
                raise self._error(number, what, "group, the ranks that take part")
            group = self._group
        return _Operation(compute_s, Collective(kind, group, float(size)))

    def _stretch(self, operation: _Operation) -> Stretch:
        return Stretch(operation.compute_s, operation.collective)

    def _background(self, operation: _Operation) -> Stretch:
        found = operation.collective
        return Stretch(
            operation.compute_s, None if found is None else Collective(found.kind, found.group, found.bytes, True)
        )

    def _pipeline(self, *, returning: bool) -> list[Stretch]:
        """What stages pass on: activations of every micro-batch, once per virtual stage, or their gradients.

        As often as SimAI counts it (``Layer.cc``, ``Expose_PP_time``): vpp x ga each way.
        """
        size, stages = self._header.get("pp_comm", 0), self._parallelism.pipeline
        if stages == 1 or size == 0:
            return []
        times = max(1, self._header.get("vpp", 1)) * max(1, self._header.get("ga", 1))
        passed = float(size) * times
        return [Stretch(0.0, Collective("point-to-point", "pipeline", passed, returning=returning))]


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20 and int(word) <= _MOST
