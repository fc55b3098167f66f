"""Which CPU receives the packets of an interface: always the same one, so no packet of a flow overtakes another.

A veth hands a packet to the backlog of the CPU that happens to send it. The queue before it may be served by a sender
on one CPU and by a timer on another; when one of them is busy, its backlog falls behind and packets change order.
Receive packet steering with a mask of one CPU per queue puts all of an interface's packets into one backlog.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_WORD_BITS = 32


def spread(interfaces: Iterable[str], cpus: Iterable[int]) -> dict[str, int]:
    """One of ``cpus`` for each interface, in turn; nothing to choose where there are none."""
    order = sorted(cpus)
    return {name: order[number % len(order)] for number, name in enumerate(interfaces)} if order else {}


def cpu_mask(cpu: int) -> str:
    """The mask of one CPU as the kernel writes it: hexadecimal words of 32 bits, the highest first."""
    words, bit = divmod(cpu, _WORD_BITS)
    return ",".join([f"{1 << bit:08x}", *["0" * 8] * words])


def steer(cpus: Mapping[str, int]) -> int:
    """Let each interface of the current network namespace be served by its CPU; return how many queues now are.

    None where the kernel cannot steer, or a container may not mount sysfs.
    """
    with _devices() as devices:
        queues = [(queue, cpu) for name, cpu in cpus.items() for queue in devices.glob(f"{name}/queues/rx-*/rps_cpus")]
        for queue, cpu in queues:
            queue.write_text(cpu_mask(cpu))
    return len(queues)


@contextmanager
def _devices() -> Iterator[Path]:
    """The directory of devices of the current network namespace, empty where there is none.

    Sysfs shows the devices of the namespace that mounted it.
    """
    with tempfile.TemporaryDirectory(prefix="testbed-sys-") as folder:
        mounted = _LIBC.mount(b"sysfs", os.fsencode(folder), b"sysfs", 0, None) == 0
        try:
            yield Path(folder) / "class" / "net"
        finally:
            if mounted:
                _LIBC.umount2(os.fsencode(folder), 0)
