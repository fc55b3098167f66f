"""Fabric, Job and Decision to JSON and back: the format of the northbound interface.

The format is that of :mod:`topologies.dataclass_json`. Input must be consistent too: a reference to an
unknown name raises ``ValueError`` with the place, as a wrong type does.
"""

from __future__ import annotations

import json
from typing import Final

from controller.decision import Decision
from controller.service.consistency import check_fabric, check_job
from topologies.dataclass_json import decode, encode
from topologies.fabric import Fabric
from workloads.job import Job

__all__ = [
    "decision_from_json",
    "decode",
    "encode",
    "fabric_from_json",
    "job_from_json",
    "parse_json",
    "to_json",
]


LONGEST_NUMBER: Final = 30
"""Digits of a whole number: more than any size, rate or count has."""


def parse_json(raw: bytes | str) -> object:
    """Return the JSON document ``raw``. ``ValueError`` with one line for what is none, NaN and depth without end."""
    try:
        return json.loads(raw, parse_constant=_no_number, parse_int=_whole_number)
    except RecursionError:
        raise ValueError("too deeply nested") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _whole_number(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def to_json(value: Fabric | Job | Decision) -> str:
    """Return ``value`` as canonical JSON: keys sorted, no spaces, the same bytes for the same value."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fabric_from_json(data: object) -> Fabric:
    """Return the fabric of parsed JSON ``data``; it fits together (:mod:`controller.service.consistency`)."""
    fabric = decode(Fabric, data, "fabric")
    check_fabric(fabric)
    return fabric


def job_from_json(data: object) -> Job:
    """Return the job of parsed JSON ``data``; it fits together, such as transfers that name flows of the job."""
    job = decode(Job, data, "job")
    check_job(job)
    return job


def decision_from_json(data: object) -> Decision:
    """Return the decision of parsed JSON ``data``."""
    return decode(Decision, data, "decision")
