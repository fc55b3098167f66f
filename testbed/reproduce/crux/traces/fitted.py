"""What the fits printed; :mod:`testbed.reproduce.crux.traces.calibration` computes it, and reads no bar predicted here.

python -m testbed reproduce crux-fit-placement --numerics standard --channels N
python -m testbed reproduce crux-fit-production --numerics standard --channels N

Figures 23 to 25 take what one replay of production without Crux gives for both inputs. Fitted one after the other, the
placement leaves more jobs on shared links than figure 6 has as soon as jobs wait for the network, and so stay longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from testbed.errors import BadInputError
from testbed.reproduce.crux.traces.inputs import TraceInputs

Value = TypeVar("Value")

CHANNELS: Final = 4
"""Connections per pair of ports, if the user does not choose: what figures 19 to 22 without Crux ask for."""
SCATTER: Final[Mapping[int, float]] = {1: 0.69, 4: 0.64, 8: 0.64}
"""Channels -> probability that a job gives up its locality, each taking its recorded time (`crux-fit-placement`)."""
TOGETHER: Final[Mapping[int, tuple[float, float]]] = {1: (0.5, 1.06), 4: (0.55, 1.86), 8: (0.53, 2.06)}
"""Channels -> that probability, and a factor on what every job sends, with which one replay shows both numbers."""


def fitted_inputs(channels: int | None = None) -> TraceInputs:
    """Return the inputs fitted with so many ``channels``; ``BadInputError``, one line, if there was no such fit."""
    chosen = CHANNELS if channels is None else channels
    return TraceInputs(*_fitted(TOGETHER, chosen), chosen)


def scatter_of(channels: int | None = None) -> TraceInputs:
    """Return the inputs with which jobs of their recorded times share links as in figure 6; volumes as they are.

    ``BadInputError``, one line, if there was no fit with so many channels.
    """
    chosen = CHANNELS if channels is None else channels
    return TraceInputs(_fitted(SCATTER, chosen), 1.0, chosen)


def scattered_by(inputs: TraceInputs) -> str:
    """Say in words what the placement was fitted to."""
    return f"placement: {_relaxed(inputs)}, fitted to the share of jobs that share a link (figure 6)"


def calibrated_on(inputs: TraceInputs) -> str:
    """Say in words what placement and volumes were fitted to."""
    volumes = f"volumes: times {inputs.volume:g}"
    both = "both fitted to the share of jobs that share a link (figure 6) and the bar None (figure 25)"
    return f"placement: {_relaxed(inputs)}; {volumes}; {both}, on the synthetic trace"


def _relaxed(inputs: TraceInputs) -> str:
    channels = "1 channel" if inputs.channels == 1 else f"{inputs.channels} channels"
    return f"{inputs.relaxed:g} of the jobs give up locality ({channels})"


def _fitted(values: Mapping[int, Value], channels: int) -> Value:
    if channels not in values:
        there = ", ".join(map(str, sorted(TOGETHER)))
        raise BadInputError(f"--channels must be one that inputs were fitted with ({there}), not {channels}")
    return values[channels]
