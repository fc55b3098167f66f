"""The most of everything that is read: sizes of files, numbers, names and fabrics; more is refused, naming the limit.

They keep a slip of the pen, or a file made to do harm, from taking the machine's memory or hours of its time. They are
far above what an experiment needs. Files are read through :func:`read_text`, which takes regular files only: a device
or a pipe would never end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Final

YAML_BYTES: Final = 2**20
"""Of a scenario or a sweep file."""
YAML_NODES: Final = 100_000
"""Values and keys of a YAML document; what aliases and merges repeat counts each time."""
WHOLE_NUMBER: Final = 2**63 - 1
"""Of any whole number in a YAML document, up or down."""
OPTION: Final = 1e18
"""Of a number among the options of a scheduler or of a manager's part, up or down."""

NAME: Final = 64
"""Characters of the name of a job or a virtual cluster."""
SCENARIO_NAME: Final = 100
"""Characters of a scenario's name: with a date it names a folder."""
TEXT: Final = 4000
"""Characters of a description or a check."""
LINE: Final = 1000
"""Characters of a message; of a longer one the middle is left out."""

JOBS: Final = 2000
"""Of a scenario, those that ``count`` makes included."""
PLACEMENTS: Final = 5_000_000
"""Jobs of a scenario times GPUs of its fabric: each job is placed with a look at all of them."""
CHECKS: Final = 200
FAILURES: Final = 200
DRAWN_FAILURES: Final = 10_000
FAILURES_PER_HOUR: Final = 3600.0
COUNT: Final = 1_000_000
"""Of whatever is counted and has no limit of its own: GPUs, iterations to measure, tokens of an expert."""
ITERATIONS: Final = 10**9
"""Of a whole job: only its completion time depends on them."""
GRADIENTS_EVERY: Final = 1000
"""Iterations that one exchange of gradients belongs to: each of them becomes a part of the job's iteration."""
CHANNELS: Final = 32
"""Connections of a job per pair of ports; NCCL opens no more channels."""
EXPERTS: Final = 4096
"""Experts of a job."""
ENVIRONMENT: Final = 1000
"""Words of the command of an external job, and variables that it adds to the environment."""
PRIORITY: Final = 1000
"""Of a job inside its virtual cluster, up or down."""
MESSAGES: Final = 1_000_000
"""Messages in an iteration of all jobs of a scenario: an all-to-all has one for each pair of hosts and rail."""
FACTOR: Final = 1e9
"""Of a multiplier or divisor; the smallest is one over it."""

HOSTS: Final = 65536
PORTS_PER_HOST: Final = 254
"""With the number of hosts it is what addresses hold (:mod:`topologies.addressing`)."""
SWITCHES: Final = 65536
LINKS: Final = 2_000_000
"""Directed links of a fabric, those inside of hosts included: 0.7 GB, at 330 bytes each. 100,000 GPUs on hosts of eight
with four NICs of two ports have 764,000."""
FABRIC_FILE_BYTES: Final = 2**26
"""Of a file that describes a fabric."""

QUANTITIES: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {"rate": (1.0, 1e18), "time": (1e-9, 1e9), "size": (1e-3, 1e18), "work": (1.0, 1e30)}
)
"""Kind -> smallest and largest value in bit/s, seconds, bytes, FLOP; 0 is allowed where it has a meaning."""

WORKLOAD_BYTES: Final = 2**28
"""Of a file that describes a workload."""
WORKLOAD_ROWS: Final = 200_000
"""Rows, or operators, of such a file."""
WORKLOAD_PHASES: Final = 10_000
"""Phases of an iteration that was read from a file."""

TRACE_BYTES: Final = 2**30
"""Of a file of a trace that is read line by line."""
JSON_TRACE_BYTES: Final = 2**28
"""Of a trace that is read as a whole."""
TRACE_LINE: Final = 2**20
"""Characters of a line of a trace."""
TRACE_COMMENTS: Final = 10_000
"""Lines of comments above the header."""
TRACE_NUMBER: Final = 1e15
"""Of any number in a trace."""

RUN_FILE_BYTES: Final = 2**29
"""Of a file of a run directory that is read back."""


class LimitError(ValueError):
    """What is to be read is too large, or is no regular file; the message says which, and the limit."""


def open_regular(path: Path, most_bytes: float) -> BufferedReader:
    """Open a regular file of at most ``most_bytes`` to be read.

    Raises ``OSError`` if it cannot be opened and :class:`LimitError` for another kind of file or a larger one.
    """
    _require(path.stat(), most_bytes)
    # Not to wait for a writer: the path may have become a pipe since it was looked at.
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: SIM115
    try:
        _require(os.fstat(file.fileno()), most_bytes)
    except BaseException:
        file.close()
        raise
    return file


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """Return the content of such a file; raises as :func:`open_regular` does."""
    with open_regular(path, most_bytes) as file:
        found = file.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise LimitError(f"more than {most_bytes} bytes")
    return found


def read_text(path: Path, most_bytes: int) -> str:
    """Return the content as text with ``\\n`` for every end of a line; ``UnicodeDecodeError`` if it is no UTF-8."""
    return read_bytes(path, most_bytes).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def line_of_damage(error: UnicodeDecodeError) -> int:
    """The line, from 1, of the first byte that is no UTF-8, where the whole file was decoded at once."""
    return 1 + bytes(error.object).count(b"\n", 0, error.start)


def _require(found: os.stat_result, most_bytes: float) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        kind = "a pipe" if stat.S_ISFIFO(found.st_mode) else "a socket" if stat.S_ISSOCK(found.st_mode) else "a device"
        raise LimitError(f"{kind} and no regular file")
    if found.st_size > most_bytes:
        raise LimitError(f"{found.st_size} bytes, more than {most_bytes} bytes")


def one_line(text: str, most: int = LINE) -> str:
    """Return ``text`` fit for one line of a terminal: control characters escaped, the middle of a long one left out."""
    safe = text if text.isprintable() else "".join(map(_printable, text))
    return safe if len(safe) <= most else f"{safe[: most * 2 // 3]} [..] {safe[-(most // 3) :]}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
