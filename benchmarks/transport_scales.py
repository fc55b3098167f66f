"""What a scale does to congestion control: the scenario ``dctcp`` simulated with finer and finer packets.

``python -m benchmarks.transport_scales [--packets K] [SCALE ...]``: GPU utilisation by scheduler at each bandwidth
scale, marks above K packets. The first scale is that of the emulation; what stays the same from there on carries over.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Final

from testbed.api import run_scenario

SCENARIO: Final = "dctcp"
SCALES: Final = (4000, 1000, 250, 60, 15)


def utilisations(scale: float, packets: int) -> dict[str, float]:
    """Scheduler -> GPU utilisation in per cent with packets of ``scale``, marked above ``packets`` that wait."""
    network = f"{{transport: dctcp, ecn: {{packets: {packets}}}, mtu: 8960, buffers: {{size: 1000000TB}}}}"
    overrides = [f"network={network}", f"scale={{bandwidth: {scale}, time: 1}}", "checks=[]"]
    with TemporaryDirectory() as place:
        done = run_scenario(SCENARIO, engine="simulation", out=place, overrides=overrides)
    return {run["scheduler"]: 100 * run["gpu_utilization"] for run in done.summary["runs"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport_scales", description=__doc__)
    parser.add_argument("scales", nargs="*", type=float, default=list(SCALES), metavar="SCALE")
    parser.add_argument("--packets", type=int, default=10, metavar="K", help="packets above which marks begin")
    given = parser.parse_args(arguments)
    rows = {scale: utilisations(scale, given.packets) for scale in given.scales}
    schedulers = list(next(iter(rows.values())))
    print(f"{'scale':>8}  " + "  ".join(f"{name:>8}" for name in schedulers) + "  difference")
    for scale, row in rows.items():
        values = [row[name] for name in schedulers]
        print(f"{scale:>8g}  " + "  ".join(f"{value:>8.2f}" for value in values) + f"  {values[-1] - values[0]:>10.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
