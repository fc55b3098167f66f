"""The bus factors of nccl-tests."""

from __future__ import annotations

from workloads.communication.collectives import COLLECTIVES


def bus_factor(collective: str, participants: int) -> float:
    """busbw / algbw of nccl-tests: bytes on a participant's wire per byte of S.

    Raises ``ValueError`` for an unknown collective.
    """
    n = participants
    factors = {
        "hierarchical": 2 * (n - 1) / n,
        "ring": 2 * (n - 1) / n,
        "scattered-ring": 2 * (n - 1) / n,
        "reduce-scatter": (n - 1) / n,
        "all-gather": (n - 1) / n,
        "alltoall": (n - 1) / n,
        "parameter-server": 2 * (n - 1) / n,
        "point-to-point": 1.0,
    }
    if collective not in factors:
        raise ValueError(f"unknown collective '{collective}', expected one of: {', '.join(COLLECTIVES)}")
    return factors[collective]
