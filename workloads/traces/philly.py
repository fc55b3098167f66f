"""Philly: jobs of a Microsoft cluster, August to December 2017 (Jeon et al., ATC'19; ``msr-fiddle/philly-traces``).

Two forms are read: the published JSON list ``cluster_job_log``, with attempts, hosts and fates, and
the CSV that the Pollux artifact made of it (``timestamp,duration,num_gpus,gpu_time,cluster``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from topologies.limits import JSON_TRACE_BYTES, TRACE_BYTES, LimitError, open_regular, read_bytes
from topologies.table import BLANKS, TraceError, read_rows, seconds_of
from workloads.traces.gathering import ENDED_BEFORE, NEVER_RAN, NO_END, OTHER_STATE, STILL_RUNNING, Gathering
from workloads.traces.trace import Trace

REQUIRED: Final = ("timestamp", "duration", "num_gpus", "cluster")
"""Columns of the filtered CSV."""

KEYS: Final = ("status", "jobid", "attempts", "submitted_time")
"""What every job of the JSON has."""

_HALF: Final = re.compile("[\ud800-\udfff]")
"""Half a character, which JSON can spell (``\\ud800``) and no file can hold."""

FATE: Final = {"Pass": "pass", "Killed": "kill", "Failed": "fail"}


def read(path: Path) -> Trace:
    """Read either form; a JSON list is recognised by its first character."""
    found = Gathering(path)
    if begins_like_json(path):
        for line, job in _jobs(path):
            _add(str(path), line, job, found)
        found.notes.append("a job ran as long as its attempts together; its GPUs and hosts are those of the last one")
        found.notes.append("attempts without a start or an end do not count")
    else:
        for row in read_rows(path, REQUIRED, found.skipped):
            found.add(
                f"philly-{row.line - 1}",
                row.time("timestamp"),
                row.number("duration"),
                row.count("num_gpus"),
                virtual_cluster=row.text("cluster"),
            )
        found.notes.append("the filtered Philly CSV says nothing of users, hosts and fates: every job counts as passed")
    return found.trace("philly")


def begins_like_json(path: Path) -> bool:
    """Whether the first character that is no blank begins a JSON list."""
    try:
        with open_regular(path, TRACE_BYTES) as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    except LimitError as error:
        raise TraceError(str(path), None, str(error), f"a trace of at most {TRACE_BYTES} bytes") from None
    except OSError as error:
        raise TraceError(str(path), None, f"cannot be read ({error.strerror})", "a Philly trace") from None


def _jobs(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON list, each with the line it begins on; one at a time, so that damage has a line."""
    try:
        text = read_bytes(path, JSON_TRACE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise TraceError(str(path), line, "not UTF-8 text", "the JSON of cluster_job_log") from None
    except LimitError as error:
        raise TraceError(str(path), None, str(error), f"JSON of at most {JSON_TRACE_BYTES} bytes") from None
    decoder, at, line = json.JSONDecoder(), _skip(text, text.index("[") + 1), 1
    counted = 0
    while not text.startswith("]", at):
        line, counted = line + text.count("\n", counted, at), at
        try:
            job, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            where = line + text.count("\n", counted, error.pos) if isinstance(error, json.JSONDecodeError) else line
            number = "nested too deeply" if isinstance(error, RecursionError) else "a number of too many digits"
            what = error.msg if isinstance(error, json.JSONDecodeError) else number
            raise TraceError(str(path), where, f"damaged JSON ({what})", "the rest of the list of jobs") from None
        if not isinstance(job, dict) or any(key not in job for key in KEYS):
            raise TraceError(str(path), line, "an entry is no job", f"the keys {', '.join(KEYS)}")
        if not isinstance(job["status"], str):
            raise TraceError(str(path), line, f"status is {_short(job['status'])}", "a text such as Pass")
        yield line, job
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith("]", at):
            line += text.count("\n", counted, at)
            raise TraceError(str(path), line, "the list of jobs is cut short", "',' or ']'")
    after = _skip(text, at + 1)
    if after < len(text):
        line += text.count("\n", counted, after)
        raise TraceError(str(path), line, f"{_short(text[after : after + 60])} after the list of jobs", "nothing")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _add(file: str, line: int, job: dict[str, Any], found: Gathering) -> None:
    attempts = job["attempts"]
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        raise TraceError(file, line, "attempts is no list of attempts", "a list")
    if not attempts:
        found.skip(NEVER_RAN)
        return
    if job["status"] not in FATE:
        found.skip(STILL_RUNNING if job["status"] == "Running" else OTHER_STATE)
        return
    times = [(_time(file, line, item, "start_time"), _time(file, line, item, "end_time")) for item in attempts]
    spans = [end - start for start, end in times if start is not None and end is not None]
    if times[-1][1] is None:
        found.skip(STILL_RUNNING if times[-1][0] is not None else NO_END)
    elif any(span < 0 for span in spans):
        found.skip(ENDED_BEFORE)
    else:
        hosts, gpus = _places(file, line, attempts)
        found.add(
            _text(file, line, job, "jobid"),
            _time(file, line, job, "submitted_time"),
            sum(spans) if spans else None,
            gpus,
            user=_text(file, line, job, "user"),
            virtual_cluster=_text(file, line, job, "vc"),
            fate=FATE[job["status"]],
            hosts=hosts,
            attempts=len(spans),  # the others have no part in the time that is split among them
        )


def _text(file: str, line: int, holder: dict[str, Any], key: str) -> str:
    """A text or a number; "" where there is none."""
    said = holder.get(key)
    if isinstance(said, list | dict | bool) or (isinstance(said, str) and _HALF.search(said)):
        raise TraceError(file, line, f"{key} is {_short(said)}", "a text or a number")
    return "" if said is None else str(said)


def _short(said: object) -> str:
    """What stands in the file, cut short."""
    try:
        shown = repr(said)
    except RecursionError:
        shown = "nested too deeply"
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _time(file: str, line: int, holder: dict[str, Any], key: str) -> float | None:
    said = holder.get(key)
    if said is None or (isinstance(said, str) and said in BLANKS):
        return None
    seconds = seconds_of(said) if isinstance(said, str) else None
    if seconds is None:
        raise TraceError(file, line, f"{key} is {_short(said)}", "a time such as 2017-10-07 01:12:09")
    return seconds


def _places(file: str, line: int, attempts: list[dict[str, Any]]) -> tuple[tuple[str, ...], int]:
    """Hosts and number of GPUs of the last attempt that lists them."""
    for attempt in reversed(attempts):
        detail = attempt.get("detail")
        if detail is None or detail == []:
            continue
        if not isinstance(detail, list) or not all(map(_is_place, detail)):
            raise TraceError(file, line, "a detail has no ip or gpus", "{ip: .., gpus: [..]}")
        hosts = dict.fromkeys(_text(file, line, part, "ip") for part in detail)
        return tuple(host for host in hosts if host), sum(len(part["gpus"]) for part in detail)
    return (), 0


def _is_place(part: object) -> bool:
    """Whether it has what a host of an attempt has."""
    return isinstance(part, dict) and "ip" in part and isinstance(part.get("gpus"), list)
