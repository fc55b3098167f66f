"""What a replay says about its cluster manager: the jobs' metrics, and how well its GPUs were used."""

from __future__ import annotations

from testbed.engines.replay.outcome import Replayed
from testbed.metrics.manager_metrics import outcome_metrics


def manager_metrics(done: Replayed) -> dict[str, float]:
    """Return name -> value: :func:`testbed.metrics.manager_metrics.outcome_metrics`, and two of the whole cluster.

    ``effective``: compute time over allocated time. ``allocated``: allocated time over that of all GPUs.
    """
    return {
        **outcome_metrics(done.jobs),
        "effective": done.gpu_utilization,
        "allocated": done.totals.allocated / (done.gpus * done.span_s) if done.span_s > 0 else 0.0,
    }
