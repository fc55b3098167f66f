"""Placement shorthand: ``h0``, ``h1:0-3``, ``h1:0,2`` and ``h1g4`` as names of GPUs."""

from __future__ import annotations

import re
from typing import Final

from topologies.fabric import Fabric, Host

_ITEM: Final = re.compile(r"^(?P<host>h\d+)(?:g(?P<gpu>\d+)|:(?P<list>\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*))?$", re.ASCII)


def expand(item: str, fabric: Fabric) -> tuple[str, ...]:
    """Return the GPU names that one placement item means, in the order written.

    Raises ``ValueError`` saying what was expected if it means none, or one twice.
    """
    match = _ITEM.match(re.sub(r"\s", "", item))
    if match is None:
        raise ValueError(f"'{item}' is no placement, expected a host (h0), GPUs of it (h1:0-3) or one GPU (h1g4)")
    host = fabric.hosts.get(match["host"])
    if host is None:
        raise ValueError(f"no host '{match['host']}' in the fabric, expected h0 to h{len(fabric.hosts) - 1}")
    if match["gpu"]:
        return (_gpu(host, int(match["gpu"])),)
    if not match["list"]:
        return host.gpus
    gpus = tuple(gpu for part in match["list"].split(",") for gpu in _range(host, part))
    if len(set(gpus)) < len(gpus):
        raise ValueError(f"'{item}' names a GPU twice, expected each once")
    return gpus


def _range(host: Host, part: str) -> tuple[str, ...]:
    first, _, last = part.partition("-")
    one, other = _gpu(host, int(first)), _gpu(host, int(last or first))
    start, end = host.gpus.index(one), host.gpus.index(other)
    if start > end:
        raise ValueError(f"range '{part}' runs backwards, expected {last}-{first}")
    return host.gpus[start : end + 1]


def _gpu(host: Host, index: int) -> str:
    if index >= len(host.gpus):
        raise ValueError(f"no GPU {index} on host {host.name}, expected 0 to {len(host.gpus) - 1}")
    return host.gpus[index]
