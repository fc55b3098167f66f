"""How packets of a flow are spread over several paths. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

LoadBalancing = Literal["hash", "spray", "spray-in-turn", "flowlet", "adaptive"]
"""``hash``: packets take the path of the decision; ``spray``: each another one, drawn at random or in turn;
``flowlet``: a flow that was silent for a while takes another one; ``adaptive``: every switch takes the shortest
queue."""

LOAD_BALANCING: Final[tuple[LoadBalancing, ...]] = get_args(LoadBalancing)

Spreading = Literal["spray", "spray-in-turn", "flowlet"]
"""Those that a kernel's forwarding table can do."""

SPREADING: Final[tuple[Spreading, ...]] = get_args(Spreading)


@dataclass(frozen=True, slots=True)
class Spread:
    """How switches spread packets over the outputs of a group; ``gap_ms``: silence after which a flowlet ends."""

    kind: Spreading
    gap_ms: int = 0


class SpreadCount(NamedTuple):
    """Packets that a group of ``switch`` has sent by each of its ``interfaces``."""

    switch: str
    interfaces: tuple[str, ...]
    packets: tuple[int, ...]

    @property
    def due(self) -> float:
        """Packets that each interface should have had."""
        return sum(self.packets) / len(self.packets)
