"""What the fits printed; :mod:`testbed.reproduce.crux.traces.calibration` computes it, and reads no bar predicted here.

python -m testbed reproduce crux-fit-placement --numerics standard
python -m testbed reproduce crux-fit-volume --numerics standard
"""

from __future__ import annotations

from typing import Final

from testbed.reproduce.crux.traces.inputs import TraceInputs

CHANNELS: Final = 1
"""Connections per pair of ports: what the testbed's jobs open. Other values need both fits again."""
PROBABILITY: Final = 0.69
"""Of a job giving up locality."""
VOLUME: Final = 0.93
"""A factor on what every job sends."""

CALIBRATED: Final = TraceInputs(PROBABILITY, VOLUME, CHANNELS)

PLACEMENT_ON: Final = (
    f"placement: {PROBABILITY:g} of the jobs give up locality, fitted to the share of jobs that share a link (figure 6)"
)
CALIBRATED_ON: Final = f"{PLACEMENT_ON}; volumes: times {VOLUME:g}, fitted to the bar None (figure 25)"
