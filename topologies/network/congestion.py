"""Which congestion control of TCP hosts run, and at how many waiting packets switches mark and drop. Pure."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Final, Literal, get_args

KernelTransport = Literal["reno", "cubic", "dctcp", "mltcp"]
"""``reno`` (RFC 5681), ``cubic`` (RFC 9438), ``dctcp`` (RFC 8257), ``mltcp``: Reno whose increase grows with the share
of an iteration's bytes that a flow has sent (HotNets 2024, section 3)."""

KERNEL_TRANSPORTS: Final[tuple[KernelTransport, ...]] = get_args(KernelTransport)
LIBRARY: Final = "libbpf.so.1"
"""What loads programs into the kernel."""
MARK_PACKETS: Final = 10
"""Full packets that wait at a level of a link when the next one gets a mark."""


@dataclass(frozen=True, slots=True)
class Congestion:
    """``transport`` by name, or ``bpf``: the one in ``file``, a compiled program for the kernel.

    ``mark_packets`` and ``drop_packets``: packets that wait at a level of a link, above which switches mark or drop the
    next one; None for never. ``gap_s``, of ``mltcp``: the silence of a flow after which an iteration begins.
    """

    transport: str
    mark_packets: int | None = MARK_PACKETS
    drop_packets: int | None = None
    file: str = ""
    gap_s: float = 0.0

    @property
    def lossy(self) -> bool:
        """Whether switches drop packets."""
        return self.drop_packets is not None


def others_can_change(state: os.stat_result) -> bool:
    """Whether anybody but root can change a file, or it is none."""
    return not stat.S_ISREG(state.st_mode) or state.st_uid != 0 or bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
