"""Real programs as jobs: a command on every host of the job, in place of compute pauses and synthetic messages. Pure.

What the command may name in braces is known when it starts: its rank, the addresses of all hosts, how many bytes to
exchange. The connections that it opens are found while it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from topologies.input.spelling import expectation

MODEL: Final = "external"
"""What tables call the model of a real program."""
UNKNOWN_BYTES: Final = 1.0
"""Bytes of a flow as long as nobody has said or measured what it carries."""
FIRST_PORT: Final = 4000
"""Of the TCP ports that a job may listen on at each of its hosts; below those of synthetic jobs."""
PORTS_PER_JOB: Final = 10
VARIABLES: Final[Mapping[str, str]] = {
    "rank": "number of the host in the job, from 0",
    "world_size": "number of hosts of the job",
    "host": "name of the host",
    "address": "address of the host",
    "addresses": "addresses of all hosts of the job, in the order of rank, with commas between",
    "first_address": "address of the host of rank 0",
    "interface": "network interface of the address",
    "port": "a TCP port that is free on every host of the job, and the nine after it",
    "gpus": "GPUs of the job on this host",
    "bytes": "communication of the job, as run: divided by the bandwidth scale",
}
"""Variable -> what it stands for."""

Progress = Literal["client", "traffic"]
"""How iterations are found: reported through ``testbed.client``, or seen as the period of the job's traffic."""

_NAME: Final = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


@dataclass(frozen=True)
class ExternalCommand:
    """The command of a job of kind ``external``, run once on each of its hosts.

    ``command`` are its words and ``environment`` more variables of its environment, in both with names of
    :data:`VARIABLES` in braces. ``processes`` of a host report iterations. ``start_limit_s`` seconds may pass until the
    last of them begins its first one. ``communication`` (bytes that a GPU hands to the collective) and ``compute_s`` of
    an iteration are what the job says of itself, in the scenario's units; None where that is left to be measured.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1
    progress: Progress = "client"
    start_limit_s: float = 60.0
    communication: float | None = None
    compute_s: float | None = None


@dataclass(frozen=True, slots=True)
class HostSetting:
    """What distinguishes one host of a job from the others."""

    rank: int
    host: str
    address: str
    interface: str
    gpus: int


def variables(hosts: Sequence[HostSetting], rank: int, port: int, size: int) -> dict[str, str]:
    """Return name -> value on the host of ``rank``; ``size`` bytes are the job's communication as run."""
    own = hosts[rank]
    return {
        "rank": str(rank),
        "world_size": str(len(hosts)),
        "host": own.host,
        "address": own.address,
        "addresses": ",".join(each.address for each in hosts),
        "first_address": hosts[0].address,
        "interface": own.interface,
        "port": str(port),
        "gpus": str(own.gpus),
        "bytes": str(size),
    }


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with ``{rank}`` and the like replaced; ``{{rank}}`` becomes ``{rank}``.

    Other braces are left as they are. Raises ``ValueError`` for a name in braces that is no variable.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return "{" + match[1] + "}"
        if match[2] not in values:
            raise ValueError(f"'{{{match[2]}}}' is no variable, {expectation(match[2], values)}")
        return values[match[2]]

    return _NAME.sub(replace, text)


def check_variables(texts: Iterable[str]) -> None:
    """Raise ``ValueError`` for the first of ``texts`` with a name in braces that is no variable."""
    for text in texts:
        filled(text, VARIABLES)
