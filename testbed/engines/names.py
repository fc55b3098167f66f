"""The names of the engines; imports nothing, so that the command line starts quickly."""

from __future__ import annotations

from typing import Final

ENGINES: Final = ("emulation", "simulation", "flow")
