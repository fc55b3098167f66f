"""Where the machine's CPU time goes, second by second: idle, stolen, the run's own, other processes'."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.fidelity.interference import Second

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PRESSURE = Path("/proc/pressure/cpu")


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU time so far in ticks, summed over all cores; ``own`` is that of the run's processes.

    ``waiting_us``: microseconds in which something waited for a CPU (PSI, ``some``); 0 on kernels without.
    """

    total: int
    idle: int
    stolen: int
    interrupt: int
    own: int
    waiting_us: int = 0


def read_cpu_times() -> CpuTimes:
    """Read the counters of ``/proc``; in the run's PID namespace every visible process is the run's own."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, idle, iowait, irq, softirq, steal = fields[:8]
    total = user + nice + system + idle + iowait + irq + softirq + steal
    return CpuTimes(total, idle + iowait, steal, irq + softirq, _own_ticks(), _waiting_us())


def _waiting_us() -> int:
    try:
        return int(_PRESSURE.read_text().split("total=", 1)[1].split()[0])
    except (OSError, IndexError, ValueError):  # no PSI in this kernel, or turned off
        return 0


def _own_ticks() -> int:
    """User and system ticks of all visible processes and of the children they have waited for."""
    total = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fields = os.read(descriptor, 4096).rpartition(b")")[2].split(None, 15)
            total += sum(map(int, fields[11:15]))
        except OSError:  # it ended meanwhile
            continue
        finally:
            os.close(descriptor)
    return total


def cpu_share(before: CpuTimes, after: CpuTimes, time_s: float, duration_s: float) -> Second:
    """What happened between two readings; ``foreign`` is busy time that neither the run nor interrupts explain."""
    total = after.total - before.total
    pressure = min(1.0, (after.waiting_us - before.waiting_us) / 1e6 / duration_s) if duration_s > 0 else 0.0
    if total <= 0:  # less than a tick has passed: nothing was seen, nothing is blamed
        return Second(time_s, duration_s, 1.0, 0.0, 0.0, pressure)
    idle = after.idle - before.idle
    stolen = after.stolen - before.stolen
    interrupt = after.interrupt - before.interrupt
    own = after.own - before.own
    foreign = max(0, total - idle - stolen - interrupt - own)
    return Second(time_s, duration_s, idle / total, stolen / total, foreign / total, pressure)
