"""What a replay takes: how often each of its parts is at work, and its CPU seconds."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Work:
    """``times`` that each part was at work, and its ``cpu_s``, without those of parts at work inside it."""

    times: Counter[str] = field(default_factory=Counter)
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Count the block as work of ``part``."""
        began, others_s = time.process_time(), sum(self.cpu_s.values())
        try:
            yield
        finally:
            inside_s = sum(self.cpu_s.values()) - others_s
            self.times[part] += 1
            self.cpu_s[part] += time.process_time() - began - inside_s
