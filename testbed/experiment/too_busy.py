"""A run that ended early since it loads the machine too much at its scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.errors import RunFailedError


class TooBusyError(RunFailedError):
    """The first seconds left ``idle`` of the CPU, by the run's own load; ``environment`` is what a record would say."""

    def __init__(self, idle: float, environment: Mapping[str, Any]) -> None:
        super().__init__(f"the run's own load left {idle:.0%} of the CPU idle in its first seconds")
        self.idle = idle
        self.environment = environment
