"""Which datapath an emulation takes, and why. Pure; :mod:`testbed.machine.capabilities` says what the machine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from testbed.errors import BadInputError
from topologies.datapath import DATAPATHS, HASHING_DATAPATHS, Datapath
from topologies.network.load_balancing import LoadBalancing

ONLY: Final = "TESTBED_DATAPATHS"
"""Environment variable: the datapaths that may be taken, separated by commas; all others count as missing."""

ALWAYS: Final[Datapath] = "userspace"
"""The datapath of every machine that has Open vSwitch."""

_NO_HASH: Final = "it does not hash flows, which the scheduler asks of the switches"
_SPREADING: Final[Datapath] = "nftables"
"""The only one that lets packets of a flow take several paths."""


@dataclass(frozen=True, slots=True)
class DatapathChoice:
    """A datapath and the reason for it; ``missing``: why this machine does not have it, empty if it does.

    ``instead``: the best one that the machine has.
    """

    datapath: Datapath
    reason: str
    missing: str = ""
    instead: Datapath = ALWAYS

    @property
    def refusal(self) -> str:
        """One line for a user who asked for what is missing: why it is, and what would do."""
        if self.instead == self.datapath:
            return f"datapath {self.datapath}, {self.reason}, cannot be had here: {self.missing}"
        return f"datapath {self.datapath} cannot be had here: {self.missing}; --datapath {self.instead} would do"


def choose(
    wanted: Datapath | None, missing: Mapping[Datapath, str], switches_hash: bool, balancing: LoadBalancing = "hash"
) -> DatapathChoice:
    """Return the datapath for a scheduler; ``switches_hash``: its switches choose paths by their own hash.

    ``wanted`` by name is taken, on this machine or not; None takes the best that the machine has and that does.
    ``missing``: datapath -> why the machine lacks it, empty where it does not. ``balancing``: how packets take paths.
    ``ValueError``, one line, where the wanted one cannot hash, or spread packets, and should.
    """
    if balancing != "hash":
        return _spreading(wanted, missing, switches_hash, balancing)
    if wanted is not None:
        if switches_hash and wanted not in HASHING_DATAPATHS:
            able = ", ".join(HASHING_DATAPATHS)
            raise ValueError(f"its switches hash flows, which the datapath {wanted} cannot, expected one of {able}")
        instead = choose(None, missing, switches_hash).datapath
        return DatapathChoice(wanted, "asked for by name", missing[wanted], instead)
    against = {
        name: missing[name] or ("" if name in HASHING_DATAPATHS or not switches_hash else _NO_HASH)
        for name in DATAPATHS
    }
    taken = next((name for name in DATAPATHS if not against[name]), ALWAYS)
    better = DATAPATHS[: DATAPATHS.index(taken)]
    reasons = [f"not {name}: {against[name]}" for name in better]
    return DatapathChoice(taken, "; ".join(["the best here", *reasons]), missing[taken])


def _spreading(
    wanted: Datapath | None, missing: Mapping[Datapath, str], switches_hash: bool, balancing: LoadBalancing
) -> DatapathChoice:
    """The datapath that lets packets of a flow take several paths."""
    if switches_hash:
        raise ValueError(f"its switches hash flows, which is no {balancing}, expected load_balancing: hash")
    if wanted not in (None, _SPREADING):
        raise ValueError(f"the datapath {wanted} has no {balancing}, expected {_SPREADING}")
    return DatapathChoice(_SPREADING, f"the only one with {balancing}", missing[_SPREADING], _SPREADING)


def only(missing: Mapping[Datapath, str], allowed: str) -> dict[Datapath, str]:
    """Return ``missing`` where only the datapaths ``allowed`` (names and commas) count; all of them if it is empty.

    Raises ``BadInputError`` for an unknown name.
    """
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    unknown = next((name for name in names if name not in DATAPATHS), None)
    if unknown is not None:
        raise BadInputError(f"{ONLY}: unknown datapath '{unknown}', expected some of {', '.join(DATAPATHS)}")
    return {name: why if not names or name in names else f"left out by {ONLY}" for name, why in missing.items()}
