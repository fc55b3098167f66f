"""What the fits printed; :mod:`testbed.reproduce.crux.traces.calibration` computes it, and reads no bar predicted here.

python -m testbed reproduce crux-fit-placement --numerics standard --channels N
python -m testbed reproduce crux-fit-volume --numerics standard --channels N
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from testbed.errors import BadInputError
from testbed.reproduce.crux.traces.inputs import TraceInputs
from workloads.models.figure_calibration import FITTED

CHANNELS: Final = FITTED.channels
"""Connections per pair of ports, if the user does not choose: as fitted for figures 19 to 22, to bars without Crux."""
PROBABILITY: Final[Mapping[int, float]] = {1: 0.69, 4: 0.64}
"""Channels -> probability that a job gives up its locality."""
VOLUME: Final[Mapping[int, float]] = {1: 0.84, 4: 1.54}
"""Channels -> factor on what every job sends."""


def fitted_inputs(channels: int | None = None) -> TraceInputs:
    """Return the inputs fitted with so many ``channels``; ``BadInputError``, one line, if there was no such fit."""
    chosen = CHANNELS if channels is None else channels
    return TraceInputs(probability_of(chosen), _fitted(VOLUME, chosen), chosen)


def probability_of(channels: int) -> float:
    """Return the fitted probability; ``BadInputError``, one line, if there was no fit with so many channels."""
    return _fitted(PROBABILITY, channels)


def placement_on(inputs: TraceInputs) -> str:
    """Say in words what the placement was fitted to."""
    channels = "1 channel" if inputs.channels == 1 else f"{inputs.channels} channels"
    relaxed = f"{inputs.relaxed:g} of the jobs give up locality"
    return f"placement: {relaxed} ({channels}), fitted to the share of jobs that share a link (figure 6)"


def calibrated_on(inputs: TraceInputs) -> str:
    """Say in words what placement and volumes were fitted to."""
    volumes = f"volumes: times {inputs.volume:g}, fitted to the bar None (figure 25)"
    return f"{placement_on(inputs)}; {volumes}; both on the synthetic trace"


def _fitted(values: Mapping[int, float], channels: int) -> float:
    if channels not in values:
        there = ", ".join(map(str, sorted(VOLUME)))
        raise BadInputError(f"--channels must be one that inputs were fitted with ({there}), not {channels}")
    return values[channels]
