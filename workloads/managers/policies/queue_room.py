"""Limits of queues for policies that count who gets how many GPUs before they ask for any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Limits = Mapping[str, Mapping[str, float]]
"""Job -> queue that contains it -> GPUs that all jobs of that queue may have (``ClusterState.limits``)."""


class QueueRoom:
    """What the queues of jobs may still give them."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._used = limits, Counter[str]()

    def take(self, job: str, gpus: int) -> bool:
        """Give ``job`` so many GPUs more; False if a queue has no room for that."""
        queues = self._limits.get(job, {})
        fits = all(self._used[queue] + gpus <= most for queue, most in queues.items())
        if fits:
            self._used.update(dict.fromkeys(queues, gpus))
        return fits
