"""The XML of MSCCL's algorithms: steps of thread blocks of GPUs, without entities and documents of other places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from topologies.limits import WORKLOAD_ROWS
from workloads.imported.errors import WorkloadFileError
from workloads.imported.text_file import read_workload_text

EXPECTED: Final = "an algorithm of MSCCL"
RECEIVING: Final = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
SENDING: Final = frozenset({"s", "rcs", "rrs", "rrcs"})
REDUCING: Final = frozenset({"rrs", "rrc", "rrcs", "re"})
STORING: Final = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
TYPES: Final = RECEIVING | SENDING | {"cpy", "re", "nop"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block; ``line`` is where it stands in the file."""

    line: int
    type: str
    source: tuple[str, int]
    target: tuple[str, int]
    count: int
    waits: tuple[int, int] | None
    """Thread block and step that come first, on the same GPU."""


@dataclass(slots=True)
class ThreadBlock:
    """Steps of a GPU, one after the other; peers that it sends to and receives from, -1 for none."""

    gpu: int
    number: int
    send: int
    receive: int
    channel: int
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Algorithm:
    """What a file says: a collective of ``gpus`` GPUs over ``chunks`` chunks a GPU."""

    file: str
    collective: str
    gpus: int
    chunks: int
    in_place: bool
    inputs: dict[int, int] = field(default_factory=dict)
    blocks: dict[tuple[int, int], ThreadBlock] = field(default_factory=dict)


def read_algorithm(path: Path, collectives: Collection[str]) -> Algorithm:
    """Return the algorithm in ``path``, for one of ``collectives``; :class:`WorkloadFileError` for what is wrong."""
    return _Parser(str(path), collectives).algorithm(read_workload_text(path, EXPECTED))


class _Parser:
    """From XML to an algorithm, without entities and documents of other places."""

    def __init__(self, file: str, collectives: Collection[str]) -> None:
        self._file, self._collectives = file, collectives
        self._found: Algorithm | None = None
        self._gpu: int | None = None
        self._block: ThreadBlock | None = None
        self._steps = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def algorithm(self, text: str) -> Algorithm:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise WorkloadFileError(self._file, error.lineno, "not XML", EXPECTED) from None
        if self._found is None:
            raise WorkloadFileError(self._file, 1, "no element algo", EXPECTED)
        return self._found

    def _refuse_doctype(self, *_: object) -> None:
        raise self._wrong("a document type", "none")

    def _start(self, name: str, given: Mapping[str, str]) -> None:
        take: Mapping[str, Callable[[Mapping[str, str]], None]] = {
            "algo": self._algo,
            "gpu": self._gpu_of,
            "tb": self._block_of,
            "step": self._step_of,
        }
        if name not in take:
            raise self._wrong(f"an element {name[:40]}", "algo, gpu, tb and step")
        take[name](given)

    def _end(self, name: str) -> None:
        if name == "gpu":
            self._gpu = None
        elif name == "tb":
            self._block = None

    def _algo(self, given: Mapping[str, str]) -> None:
        if self._found is not None:
            raise self._wrong("an algo inside another", "one")
        collective = given.get("coll", "").replace("_", "").lower()
        if collective not in self._collectives:
            raise self._wrong(f"coll '{given.get('coll', '')[:40]}'", f"one of {', '.join(self._collectives)}")
        gpus, chunks = self._number(given, "ngpus", 1, 4096), self._number(given, "nchunksperloop", 1, WORKLOAD_ROWS)
        in_place = self._number({"inplace": "0", **given}, "inplace", 0, 1) == 1
        self._found = Algorithm(self._file, collective, gpus, chunks, in_place)

    def _gpu_of(self, given: Mapping[str, str]) -> None:
        if self._found is None or self._gpu is not None:
            raise self._wrong("a gpu", "it inside algo")
        self._gpu = self._number(given, "id", 0, self._found.gpus - 1)
        if self._gpu in self._found.inputs:
            raise self._wrong(f"gpu {self._gpu} twice", "each once")
        self._found.inputs[self._gpu] = self._number(given, "i_chunks", 0, WORKLOAD_ROWS)

    def _block_of(self, given: Mapping[str, str]) -> None:
        if self._found is None or self._gpu is None or self._block is not None:
            raise self._wrong("a tb", "it inside gpu")
        last = self._found.gpus - 1
        number, channel = self._number(given, "id", 0, 4096), self._number(given, "chan", -1, 4096)
        send, receive = self._number(given, "send", -1, last), self._number(given, "recv", -1, last)
        if (self._gpu, number) in self._found.blocks or self._gpu in (send, receive):
            raise self._wrong(f"tb {number} of gpu {self._gpu}", "each once, with other GPUs as peers")
        self._block = ThreadBlock(self._gpu, number, send, receive, channel)
        self._found.blocks[self._gpu, number] = self._block

    def _step_of(self, given: Mapping[str, str]) -> None:
        if self._block is None:
            raise self._wrong("a step", "it inside tb")
        self._steps += 1
        if self._steps > WORKLOAD_ROWS:
            raise self._wrong(f"more than {WORKLOAD_ROWS} steps", "fewer")
        if self._number(given, "s", 0, WORKLOAD_ROWS) != len(self._block.steps):
            raise self._wrong(f"step {given['s']} of tb {self._block.number}", f"step {len(self._block.steps)}")
        kind = given.get("type", "")
        if kind not in TYPES:
            raise self._wrong(f"type '{kind[:40]}'", f"one of {', '.join(sorted(TYPES))}")
        for peers, peer, word in ((SENDING, self._block.send, "send"), (RECEIVING, self._block.receive, "recv")):
            if kind in peers and peer < 0:
                raise self._wrong(f"type {kind} in a tb without {word}", f"a peer as {word}")
        after, step = self._number(given, "depid", -1, 4096), self._number(given, "deps", -1, WORKLOAD_ROWS)
        self._block.steps.append(
            Step(
                self._parser.CurrentLineNumber,
                kind,
                self._chunk(given, "src"),
                self._chunk(given, "dst"),
                self._number({"cnt": "1", **given}, "cnt", -1 if kind == "nop" else 1, WORKLOAD_ROWS),
                None if after < 0 or step < 0 else (after, step),
            )
        )

    def _chunk(self, given: Mapping[str, str], end: str) -> tuple[str, int]:
        buffer = given.get(f"{end}buf", "i")
        if buffer not in ("i", "o", "s"):
            raise self._wrong(f"{end}buf '{buffer[:40]}'", "i, o or s")
        return buffer, self._number({f"{end}off": "0", **given}, f"{end}off", -1, WORKLOAD_ROWS)

    def _number(self, given: Mapping[str, str], key: str, least: int, most: int) -> int:
        text = given.get(key, "")
        digits = text[1:] if text.startswith("-") else text
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and least <= int(text) <= most):
            raise self._wrong(f"{key} '{text[:40]}'", f"a whole number from {least} to {most}")
        return int(text)

    def _wrong(self, what: str, expected: str) -> WorkloadFileError:
        return WorkloadFileError(self._file, self._parser.CurrentLineNumber, what, expected)
