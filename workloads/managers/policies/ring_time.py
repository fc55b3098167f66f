"""What a job that sends nothing would send on more GPUs: one GPU has no ring, and a ring inside a host is free."""

from __future__ import annotations

from collections.abc import Callable


def ring_of_more(gpus: int, most: int, communication_s: Callable[[int], float]) -> tuple[int, float] | None:
    """Return (GPUs, seconds of communication) for the first of 2, 4, .. times ``gpus`` that sends; None up to ``most``.

    ``communication_s``: GPUs that lie together -> seconds in an iteration alone.
    """
    while 2 * gpus <= most:
        gpus *= 2
        seconds = communication_s(gpus)
        if seconds > 0.0:
            return gpus, seconds
    return None
