"""The Gittins index of a job whose total service is one of a known distribution (textbook form; Tiresias section 3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf


class Gittins:
    """Indices under ``services``: total service of jobs like these, in GPU-seconds, each as likely as the others."""

    def __init__(self, services: Sequence[float]) -> None:
        """``ValueError`` for no services, or one that is not positive."""
        if not services or min(services) <= 0:
            raise ValueError("a distribution of service needs at least one value, each more than 0 GPU-seconds")
        self._sorted = sorted(float(service) for service in services)
        self._sums = [0.0, *accumulate(self._sorted)]

    def index(self, attained: float, until: float = inf) -> float:
        """Return P(S <= until | S > attained) / E[min(S, until) - attained | S > attained].

        That is the chance to end per GPU-second if the job is served until it has ended or has had ``until``; 0 for a
        job that has had more than any known one.
        """
        first, last = bisect_right(self._sorted, attained), bisect_right(self._sorted, until)
        longer = len(self._sorted) - first
        if longer == 0 or until <= attained:
            return 0.0
        ending = max(0, last - first)
        beyond = (longer - ending) * until if longer > ending else 0.0
        expected = (self._sums[max(first, last)] - self._sums[first] + beyond) / longer - attained
        return ending / longer / expected if expected > 0 else inf
