"""Whether the kernel of this machine takes the programs that count queues and control congestion."""

from __future__ import annotations

import ctypes
import platform
import re
from pathlib import Path
from typing import Final

from topologies.network.congestion import LIBRARY

BTF: Final = Path("/sys/kernel/btf/vmlinux")
OLDEST: Final = (6, 4)
"""The first kernel in which a congestion control goes with the process that has added it."""


def missing_for_programs() -> str:
    """Why this machine cannot have them, one line; empty if it can, as far as that shows without trying."""
    release = platform.release()
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        return f"kernel {release} is older than {'.'.join(map(str, OLDEST))}"
    if not BTF.exists():
        return f"this kernel does not describe its types in {BTF} (CONFIG_DEBUG_INFO_BTF)"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return f"there is no {LIBRARY} (Debian: libbpf1)"
    return ""
