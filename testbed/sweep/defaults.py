"""What the command line and a sweep agree on; imports nothing, so that the command line starts quickly."""

from __future__ import annotations

from pathlib import Path
from typing import Final

OUT: Final = Path("runs") / "sweep"
"""Where the points of sweeps are kept, a folder per sweep."""
LOCAL: Final = "local"
"""The address of the Ray cluster that a sweep makes for itself on this machine."""
