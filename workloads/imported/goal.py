"""GOAL schedules (LogGOPSim, ATLAHS) as text: compute, sends and receives of ranks, and what waits for what.

Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language" (2009). One statement per line; comments are ``//`` and
``/* */``. Compute is in nanoseconds. Receives from anybody or of any tag are refused: what they wait for is only known
once it has run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from topologies.limits import WORKLOAD_ROWS
from workloads.imported.errors import WorkloadFileError
from workloads.imported.text_file import read_workload_text
from workloads.models.catalogue import TRANSFORMER_FLOPS

FORM: Final = "goal"
EXPECTED: Final = "a GOAL schedule"
MOST_RANKS: Final = 10_000
_NUMBER_OF_RANKS: Final = re.compile(r"num_ranks (\d{1,9})")
_RANK: Final = re.compile(r"rank (\d{1,9}) ?\{")
_WHERE: Final = r"((?: cpu \d{1,6}| nic \d{1,6})*)"
_CALC: Final = re.compile(rf"(?:([A-Za-z]\w*): ?)?calc (\d{{1,15}}){_WHERE}")
_MESSAGE: Final = re.compile(
    r"(?:([A-Za-z]\w*): ?)?(send|recv) (\d{1,15})b (to|from) (-?\d{1,9})(?: tag (-?\d{1,9}))?" + _WHERE
)
_REQUIRES: Final = re.compile(r"([A-Za-z]\w*) (i?requires) ([A-Za-z]\w*)")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)

Kind = Literal["calc", "send", "recv"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a rank: ``amount`` is nanoseconds of compute, or bytes to or from ``peer``.

    ``needs`` are places in the schedule of operations of the same rank that have to be over.
    """

    rank: int
    kind: Kind
    amount: int
    peer: int = -1
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GoalSchedule:
    """The operations of ``ranks`` ranks, rank by rank; ``sends``: place of a receive -> place of what it receives."""

    source: str
    ranks: int
    operations: tuple[Operation, ...]
    sends: dict[int, int] = field(hash=False, compare=False, default_factory=dict)

    @property
    def compute_s(self) -> float:
        """Seconds of compute of an iteration, of all ranks together."""
        return sum(each.amount for each in self.operations if each.kind == "calc") * 1e-9

    @property
    def bytes_sent(self) -> int:
        """Bytes of all sends of an iteration."""
        return sum(each.amount for each in self.operations if each.kind == "send")

    @property
    def flops(self) -> float:
        """FLOPs of an iteration: those of transformers that compute as long, on one GPU per rank."""
        return self.compute_s * TRANSFORMER_FLOPS

    @property
    def compute_source(self) -> str:
        """Where its compute comes from."""
        return "schedule"

    def text(self) -> str:
        """Return the schedule as GOAL text."""
        lines = [f"num_ranks {self.ranks}"]
        by_rank: dict[int, list[int]] = defaultdict(list)
        for place, operation in enumerate(self.operations):
            by_rank[operation.rank].append(place)
        for rank in range(self.ranks):
            lines += ["", f"rank {rank} {{"]
            label = {place: f"l{number}" for number, place in enumerate(by_rank[rank], 1)}
            for place, name in label.items():
                lines.append(f"{name}: {_written(self.operations[place])}")
                lines += [f"{name} requires {label[each]}" for each in self.operations[place].needs]
            lines.append("}")
        return "\n".join((*lines, ""))


def _written(operation: Operation) -> str:
    if operation.kind == "calc":
        return f"calc {operation.amount} cpu {operation.cpu}"
    way = "to" if operation.kind == "send" else "from"
    where = f"{operation.kind} {operation.amount}b {way} {operation.peer} tag {operation.tag}"
    return f"{where} cpu {operation.cpu} nic {operation.nic}"


def read(path: Path) -> GoalSchedule:
    """Return the schedule in ``path``; :class:`WorkloadFileError` names the line that is wrong."""
    text = read_workload_text(path, EXPECTED)
    return _Reader(str(path)).schedule(text)


class _Reader:
    """What is known of a file while it is read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._ranks = 0
        self._rank: int | None = None
        self._seen: set[int] = set()
        self._operations: list[Operation] = []
        self._lines: list[int] = []
        self._labels: dict[str, int] = {}
        self._needs: dict[int, list[int]] = defaultdict(list)
        self._starts: list[tuple[int, int]] = []

    def schedule(self, text: str) -> GoalSchedule:
        """Read all lines, then match sends with receives and look for circles."""
        for number, line in _statements(text):
            self._take(number, line)
        if self._rank is not None:
            raise WorkloadFileError(self._file, None, f"rank {self._rank} is not closed", "a closing brace")
        if self._ranks == 0:
            raise WorkloadFileError(self._file, 1, "no num_ranks", EXPECTED)
        for place, other in self._starts:  # it may start when the other may
            self._needs[place] += self._needs[other]
        whole = tuple(
            Operation(op.rank, op.kind, op.amount, op.peer, op.tag, op.cpu, op.nic, tuple(self._needs[place]))
            for place, op in enumerate(self._operations)
        )
        found = GoalSchedule(self._file, self._ranks, whole, self._matched())
        if len(in_order(found)) < len(whole):
            raise WorkloadFileError(self._file, None, "operations wait for each other in a circle", EXPECTED)
        return found

    def _take(self, number: int, line: str) -> None:
        if self._ranks == 0:
            self._take_number(number, line)
        elif self._rank is None:
            self._take_rank(number, line)
        elif line == "}":
            self._rank = None
        elif found := _REQUIRES.fullmatch(line):
            self._take_need(number, *found.groups())
        elif found := _CALC.fullmatch(line):
            label, amount, where = found.groups()
            self._add(number, label, Operation(self._rank, "calc", int(amount), cpu=_named("cpu", where)))
        elif found := _MESSAGE.fullmatch(line):
            self._take_message(number, self._rank, found)
        else:
            raise self._wrong(number, f"'{line[:60]}'", "calc, send, recv, requires or a closing brace")

    def _take_number(self, number: int, line: str) -> None:
        found = _NUMBER_OF_RANKS.fullmatch(line)
        if found is None:
            raise self._wrong(number, f"'{line[:60]}'", "num_ranks and a number")
        self._ranks = int(found[1])
        if not 1 <= self._ranks <= MOST_RANKS:
            raise self._wrong(number, f"{self._ranks} ranks", f"1 to {MOST_RANKS}")

    def _take_rank(self, number: int, line: str) -> None:
        found = _RANK.fullmatch(line)
        if found is None:
            raise self._wrong(number, f"'{line[:60]}'", "a rank and an opening brace")
        rank = int(found[1])
        if rank >= self._ranks or rank in self._seen:
            what = f"rank {rank} {'of' if rank >= self._ranks else 'twice, of'} {self._ranks}"
            raise self._wrong(number, what, "each rank once")
        self._seen.add(rank)
        self._rank, self._labels = rank, {}

    def _take_need(self, number: int, label: str, kind: str, needed: str) -> None:
        for name in (label, needed):
            if name not in self._labels:
                raise self._wrong(number, f"'{name}' is no label of rank {self._rank}", "one of a line before")
        place, other = self._labels[label], self._labels[needed]
        if kind == "requires":
            self._needs[place].append(other)
        else:
            self._starts.append((place, other))

    def _take_message(self, number: int, rank: int, found: re.Match[str]) -> None:
        label, what, size, way, peer, tag, where = found.groups()
        kind: Kind = "send" if what == "send" else "recv"
        if way != ("to" if kind == "send" else "from"):
            raise self._wrong(number, f"{kind} {way}", "send .. to, recv .. from")
        if int(peer) < 0 or int(tag or 0) < 0:
            raise self._wrong(number, "a message from anybody or of any tag", "a rank and a tag")
        if int(peer) >= self._ranks or int(peer) == rank:
            raise self._wrong(number, f"rank {peer} as the peer of rank {rank}", f"another of {self._ranks} ranks")
        cpu, nic = _named("cpu", where), _named("nic", where)
        self._add(number, label, Operation(rank, kind, int(size), int(peer), int(tag or 0), cpu, nic))

    def _add(self, number: int, label: str | None, operation: Operation) -> None:
        if len(self._operations) >= WORKLOAD_ROWS:
            raise self._wrong(number, f"more than {WORKLOAD_ROWS} operations", "fewer")
        if label is not None:
            if label in self._labels:
                raise self._wrong(number, f"label '{label}' a second time", "another")
            self._labels[label] = len(self._operations)
        self._operations.append(operation)
        self._lines.append(number)

    def _matched(self) -> dict[int, int]:
        """Place of each receive -> place of the send that it receives: the first that is left, of the same kind."""
        waiting: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for place, each in enumerate(self._operations):
            if each.kind == "send":
                waiting[each.rank, each.peer, each.tag].append(place)
        found: dict[int, int] = {}
        taken: Counter[tuple[int, int, int]] = Counter()
        for place, each in enumerate(self._operations):
            if each.kind != "recv":
                continue
            key = each.peer, each.rank, each.tag
            sends = waiting[key]
            if taken[key] == len(sends):
                raise self._wrong(self._lines[place], f"rank {each.peer} sends no such message", "a send for each")
            send = sends[taken[key]]
            taken[key] += 1
            if self._operations[send].amount != each.amount:
                size = self._operations[send].amount
                raise self._wrong(self._lines[place], f"{each.amount} bytes of {size} that are sent", "as many")
            found[place] = send
        for key, sends in waiting.items():
            if taken[key] < len(sends):
                line = self._lines[sends[taken[key]]]
                raise self._wrong(line, f"rank {key[1]} receives no such message", "a recv for each")
        return found

    def _wrong(self, line: int, what: str, expected: str) -> WorkloadFileError:
        return WorkloadFileError(self._file, line, what, expected)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Number and content of each line that says something, its blanks as one."""
    plain = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(plain.splitlines(), 1):
        if said := " ".join(line.partition("//")[0].split()):
            yield number, said


def _named(name: str, where: str) -> int:
    words = where.split()
    return int(words[words.index(name) + 1]) if name in words else 0


def dependencies(schedule: GoalSchedule) -> tuple[list[int], dict[int, list[int]]]:
    """Return how many others each operation waits for, and which wait for it; a receive waits for its send."""
    waits = [len(each.needs) + (each.kind == "recv") for each in schedule.operations]
    behind: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(schedule.operations):
        for needed in each.needs:
            behind[needed].append(place)
    for receive, send in schedule.sends.items():
        behind[send].append(receive)
    return waits, behind


def in_order(schedule: GoalSchedule) -> list[int]:
    """Return places of operations so that each comes after what it waits for; those of a circle are missing.

    Of those that could come next, those of the earliest round come first: what waits for as few others as possible.
    """
    waits, behind = dependencies(schedule)
    ordered = [place for place, count in enumerate(waits) if count == 0]
    for place in ordered:
        for other in behind[place]:
            waits[other] -= 1
            if waits[other] == 0:
                ordered.append(other)
    return ordered
