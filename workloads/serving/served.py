"""The requests of a serving job on its GPUs, as values that engines and metrics share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """It arrives ``arrival_s`` after its job has begun, with ``prompt`` tokens, and gets ``output`` tokens."""

    arrival_s: float
    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class DecodeModel:
    """Seconds of a step of a decode instance, and what fits into it.

    ``batch`` requests of ``most_tokens`` cached tokens together at most. A step reads dense weights (``weights_s``),
    those of the experts that some token needs (``experts_s`` for all, a token needs ``expert_share`` of them) and the
    cache (``token_s`` for each token in it); or it computes for ``compute_s`` a request, if that is longer. ``sums_s``
    a request are those of its tensor group.
    """

    batch: int
    most_tokens: int
    weights_s: float
    experts_s: float
    expert_share: float
    token_s: float
    compute_s: float
    sums_s: float

    def step_s(self, requests: int, tokens: int) -> float:
        """Seconds of a step with ``requests``, which have ``tokens`` in the cache."""
        touched = 1.0 - (1.0 - self.expert_share) ** requests
        read_s = self.weights_s + touched * self.experts_s + tokens * self.token_s
        return max(read_s, requests * self.compute_s) + requests * self.sums_s


@dataclass(frozen=True, slots=True)
class Served:
    """Request k is in iteration ``k // slots``, in phases 3 s to 3 s + 2 with s = ``k % slots``.

    Those are its prefill, the sending of its cache, and its arrival at decode instance ``k % decode_instances``.
    ``prefill_s``: by request. ``compute`` and ``size``: by request, how many times the mean of all that its prefill
    computes and its cache has, which is what the phases say.
    """

    slots: int
    decode_instances: int
    requests: tuple[Request, ...]
    prefill_s: tuple[float, ...]
    compute: tuple[float, ...]
    size: tuple[float, ...]
    decode: DecodeModel

    @property
    def iterations(self) -> int:
        """Rounds of ``slots`` requests."""
        return len(self.requests) // self.slots

    @property
    def interval_s(self) -> float:
        """Mean seconds from one round to the next."""
        last = self.requests[-1].arrival_s
        return last / len(self.requests) * self.slots

    def of_slot(self, slot: int) -> range:
        """The requests of ``slot``, by iteration."""
        return range(slot, self.iterations * self.slots, self.slots)


def cache_phase(slot: int) -> int:
    """The phase in which the cache of the request in ``slot`` is sent."""
    return 3 * slot + 1


def slot_of(phase: int) -> int:
    """The slot whose request ``phase`` is about."""
    return phase // 3
