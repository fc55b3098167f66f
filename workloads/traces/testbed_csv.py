"""The testbed's own CSV: a line per job, a column per field of :class:`workloads.traces.trace.TraceJob`.

``name,submit_s,duration_s,gpus`` are needed, the other columns may be left out; hosts are joined by
``;``. Lines with ``#`` above the header carry what belongs to the whole trace:
``# name: ..``, ``# synthetic: yes``, ``# note: ..`` and ``# skipped N: reason``.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import fields
from pathlib import Path
from typing import Final

from topologies.table import Row, TraceError, comments_of, lines_of, read_rows, reading
from workloads.traces.gathering import Gathering
from workloads.traces.trace import FATES, Trace, TraceJob

COLUMNS: Final = tuple(field.name for field in fields(TraceJob))
REQUIRED: Final = ("name", "submit_s", "duration_s", "gpus")
SEPARATOR: Final = ";"
_DIGITS: Final = 15
"""Of a count."""


def text_of(trace: Trace) -> str:
    """Return the trace as CSV; reading it gives an equal trace. Raises ``ValueError`` for names it cannot hold."""
    lines = [f"# name: {trace.name}", *(["# synthetic: yes"] if trace.synthetic else [])]
    lines += [f"# note: {note}" for note in trace.notes]
    lines += [f"# skipped {count}: {reason}" for reason, count in trace.skipped.items()]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for job in trace.jobs:
        _require_writable(job)
        writer.writerow(
            (
                job.name,
                repr(job.submit_s),
                repr(job.duration_s),
                job.gpus,
                job.model,
                job.user,
                job.virtual_cluster,
                job.fate,
                SEPARATOR.join(job.hosts),
                job.attempts,
                "" if job.min_gpus is None else job.min_gpus,
                "" if job.max_gpus is None else job.max_gpus,
                "yes" if job.opportunistic else "",
            )
        )
    return "\n".join(" ".join(line.splitlines()) for line in lines) + "\n" + out.getvalue()


def write(trace: Trace, path: Path) -> None:
    """Write the trace to ``path``."""
    path.write_text(text_of(trace), "utf-8")


def read(path: Path) -> Trace:
    """Read a trace; its times are kept as they are. Raises :class:`TraceError` for a damaged file."""
    name, synthetic, notes = path.stem, False, []
    found = Gathering(path)
    with reading(path) as file:
        comments, _ = comments_of(lines_of(file, str(path)), str(path))
    for number, line in enumerate(comments, 1):
        key, _, value = line.lstrip("# ").partition(":")
        skipped = re.fullmatch(r"skipped (\d+)", key.strip())
        if key.strip() == "name":
            name = value.strip()
        elif key.strip() == "synthetic":
            synthetic = value.strip() == "yes"
        elif skipped:
            if len(skipped.group(1)) > _DIGITS:
                raise TraceError(str(path), number, "the count of what was skipped is too large", f"{_DIGITS} digits")
            found.skipped[value.strip()] += int(skipped.group(1))
        elif key.strip() == "note":
            notes.append(value.strip())
    for row in read_rows(path, REQUIRED, found.skipped):
        _add(row, found)
    found.notes = notes
    return found.trace(name, origin_s=0.0, synthetic=synthetic)


def _add(row: Row, found: Gathering) -> None:
    fate = row.text("fate") or FATES[0]
    if not row.text("name"):
        row.fail("name is empty", "a name")
    if fate not in FATES:
        row.fail(f"fate is '{fate}'", f"one of {', '.join(FATES)}")
    gpus, attempts = row.count("gpus"), row.count("attempts")
    if attempts == 0:
        row.fail("attempts is 0", "1 or more")
    found.add(
        row.text("name"),
        row.number("submit_s"),
        row.number("duration_s"),
        gpus,
        model=row.text("model"),
        user=row.text("user"),
        virtual_cluster=row.text("virtual_cluster"),
        fate=fate,
        hosts=tuple(host for host in row.text("hosts").split(SEPARATOR) if host),
        attempts=attempts or 1,
        min_gpus=_bound(row, "min_gpus", least=1, most=gpus),
        max_gpus=_bound(row, "max_gpus", least=gpus),
        opportunistic=_flag(row, "opportunistic"),
    )


def _bound(row: Row, column: str, *, least: int | None, most: int | None = None) -> int | None:
    """Fewest or most GPUs of an elastic job; None where the column is empty."""
    value = row.count(column)
    if value is not None and not (least or 0) <= value <= (value if most is None else most):
        row.fail(f"{column} is {value}", f"1 to {most} (gpus)" if most is not None else f"{least} (gpus) or more")
    return value


def _flag(row: Row, column: str) -> bool:
    text = row.text(column)
    if text not in ("", "yes", "no"):
        row.fail(f"{column} is '{text}'", "yes, no or nothing")
    return text == "yes"


def _require_writable(job: TraceJob) -> None:
    for text in (job.name, job.model, job.user, job.virtual_cluster, *job.hosts):
        if text != text.strip() or "\n" in text or "\r" in text:
            raise ValueError(f"job '{job.name}': {text!r} cannot stand in a CSV, expected no blanks around it")
    if any(SEPARATOR in host or not host for host in job.hosts):
        raise ValueError(f"job '{job.name}': a host must have a name without '{SEPARATOR}'")
