"""What a replay says about its cluster manager: the jobs' metrics, and how well its GPUs were used."""

from __future__ import annotations

from testbed.managed.metrics import outcome_metrics
from testbed.replay.outcome import Replayed


def manager_metrics(done: Replayed) -> dict[str, float]:
    """Return the metrics by name (:func:`testbed.managed.metrics.outcome_metrics`) and two of the whole cluster.

    ``effective``: compute time over allocated time. ``allocated``: allocated time over that of all GPUs.
    """
    return {
        **outcome_metrics(done.jobs),
        "effective": done.gpu_utilization,
        "allocated": done.totals.allocated / (done.gpus * done.span_s) if done.span_s > 0 else 0.0,
    }
