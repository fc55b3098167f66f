"""How large Lyra's cluster is here: fitted to how full the paper's was without Lyra, and to nothing else.

One number is fitted, the hosts that train; those of inference follow in the paper's proportion. What is read from the
paper is the Baseline's usage of training GPUs, :data:`BASELINE_USAGE`. No row with loans or elastic jobs is played
before the number is fixed, and none of the paper's other results is known here (a test checks what this module reads).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

BASELINE_USAGE: Final = 0.72
"""Usage of the training GPUs without loans and without elastic jobs (Lyra, EuroSys 2023, table of the simulation)."""
_NARROWEST, _WIDEST = 0.4, 2.0


def fitted_hosts(usage_of: Callable[[int], float], gpu_s: float, span_s: float, gpus_per_host: int) -> int:
    """Return the number of hosts on which the Baseline's usage (``usage_of``) comes closest to the paper's.

    ``gpu_s``: GPU-seconds of all jobs, ``span_s``: seconds over which usage counts. Usage falls with more hosts:
    bisection, from hosts that all this work would fill 2.5 times to such that it would fill by half.
    """
    full = gpu_s / (span_s * gpus_per_host)
    low, high = max(1, int(_NARROWEST * full)), max(2, ceil(_WIDEST * full))
    known: dict[int, float] = {}

    def usage(hosts: int) -> float:
        if hosts not in known:
            known[hosts] = usage_of(hosts)
        return known[hosts]

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if usage(middle) > BASELINE_USAGE else (low, middle)
    return min((low, high), key=lambda hosts: abs(usage(hosts) - BASELINE_USAGE))
