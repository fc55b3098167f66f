"""What the machine offers for emulating a fabric, tried in the run's own namespace."""

from __future__ import annotations

from topologies.mininet_adapter.system import CommandError, run_command
from topologies.shaping import Discipline


def best_discipline() -> Discipline:
    """``prio`` where the kernel has it, strict by construction; else ``htb``. Call it in a separate namespace."""
    try:
        run_command(["tc", "qdisc", "add", "dev", "lo", "root", "handle", "2:", "prio", "bands", "8"])
    except CommandError:
        return "htb"
    run_command(["tc", "qdisc", "del", "dev", "lo", "root"])
    return "prio"
