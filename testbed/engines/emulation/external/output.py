"""What the commands of external jobs say, as messages from a run's inside to its outside."""

from __future__ import annotations

from typing import Final

OUTPUT: Final = "output"
"""The phase of messages with a line that a command of an external job has said."""
