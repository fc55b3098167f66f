"""How a run's inside and outside exchange values: JSON through a sealed file in memory and a pipe, never by a path.

Both ends check what they read as they would check a file: neither takes the other's word for code.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import AS_GIVEN, ScaleSearch, TooBusyError
from testbed.results import row_files
from testbed.results.record import RunRecord
from testbed.results.record_json import decision_row_from, decision_row_to, run_from, run_to
from topologies.dataclass_json import decode, encode
from topologies.mininet_adapter.system import CommandError

ANSWER: Final = "answer"
"""The phase of messages that hold the answer."""
COMMAND: Final = "failed command"
"""The phase of messages that hold the whole of a command that failed."""
_PIECE: Final = 1 << 15
"""Characters in a message: a line that is read bit by bit should not be long."""
_Row = TypeVar("_Row")
_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@contextmanager
def sealed(content: bytes) -> Iterator[int]:
    """A file in memory that holds ``content``, as a descriptor to read from; nobody can change it any more."""
    descriptor = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Request:
    """What the inside is to run; ``watched``: it also tells samples of how the run goes, beside its progress."""

    experiment: Experiment
    watched: bool = False
    search: ScaleSearch = AS_GIVEN


def request_of(request: Request) -> bytes:
    """Return what the inside is to read on its standard input."""
    return json.dumps(encode(request), allow_nan=False).encode()


def read_request(text: bytes) -> Request:
    """Return what to run; ``ValueError`` if ``text`` is no request."""
    return decode(Request, json.loads(text), "request")


class MessageWriter:
    """Writes messages as lines of JSON to a descriptor, each line whole, whichever threads write at a time.

    ``sys.stdout`` does not: where PYTHONUNBUFFERED is set, the lines of two threads cut each other in two.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, message: Mapping[str, Any]) -> None:
        """Write ``message``; returns when its last byte is written."""
        left = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            while left:
                left = left[os.write(self._descriptor, left) :]


def messages_of(answer: RunRecord | Exception) -> Iterator[dict[str, Any]]:
    """The record, or the message of what went wrong, as the last messages of the inside: pieces of one JSON text.

    The whole of a command that failed comes before them.
    """
    if isinstance(answer, CommandError):
        yield from ({"phase": COMMAND, "text": piece} for piece in _pieces(answer.whole))
    text = json.dumps(_document_of(answer), allow_nan=False)
    pieces = _pieces(text)
    for number, piece in enumerate(pieces):
        yield {"phase": ANSWER, "piece": number, "pieces": len(pieces), "text": piece}


def _pieces(text: str) -> list[str]:
    return [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]


def _document_of(answer: RunRecord | Exception) -> dict[str, Any]:
    if isinstance(answer, TooBusyError):
        return {"too busy": answer.idle, "environment": answer.environment}
    if isinstance(answer, Exception):
        return {"problem": _in_words(answer)}
    return {
        "record": run_to(answer),
        "iterations": row_files.iterations_to_csv(answer.iterations),
        "links": row_files.links_to_csv(answer.links),
        "messages": row_files.messages_to_csv(answer.messages),
        "requests": row_files.requests_to_csv(answer.requests),
        "decisions": [decision_row_to(row) for row in answer.decisions],
    }


def _in_words(error: Exception) -> str:
    """What went wrong; errors that nobody foresaw say so, since their text alone may be no more than a name."""
    kind = type(error).__name__
    if isinstance(error, LookupError | TypeError | AttributeError | AssertionError | ArithmeticError):
        return f"{kind}: {error}; please report; details in testbed.log of the run"
    return str(error) or kind


def read_answer(messages: Sequence[Mapping[str, Any]], log: object) -> RunRecord:
    """Return the record; ``TooBusyError`` if the run ended early.

    ``RunFailedError`` with the inside's message if there is no record, else naming ``log``.
    """
    if not messages:
        raise RunFailedError(f"the run ended without a record, see {log}")
    try:
        answer = json.loads(_text_of(messages))
        if "problem" in answer:
            raise RunFailedError(str(answer["problem"]))
        if "too busy" in answer:
            raise TooBusyError(float(answer["too busy"]), dict(answer["environment"]))
        return run_from(
            answer["record"],
            iterations=_rows(answer, "iterations", row_files.iterations_from_csv),
            links=_rows(answer, "links", row_files.links_from_csv),
            messages=_rows(answer, "messages", row_files.messages_from_csv),
            requests=_rows(answer, "requests", row_files.requests_from_csv),
            decisions=tuple(decision_row_from(row) for row in answer["decisions"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailedError(f"the record of the run is not understood ({error}), see {log}") from error


def _text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Join the pieces of a text; ``ValueError`` unless all are there, in order."""
    whole = int(messages[0]["pieces"])
    if [message["piece"] for message in messages] != list(range(whole)):
        raise ValueError(f"{len(messages)} of its {whole} pieces have arrived")
    return "".join(str(message["text"]) for message in messages)


def _rows(answer: Mapping[str, Any], name: str, parse: Callable[[str], tuple[_Row, ...]]) -> tuple[_Row, ...]:
    try:
        return parse(answer[name])
    except row_files.RowError as error:
        text = "".join(str(answer[name]).splitlines()[error.line - 1 : error.line])[:200]
        raise ValueError(f"{name}, line {error.line}: {error}: '{text}'") from error
