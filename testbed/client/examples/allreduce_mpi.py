"""``python3 -m testbed.client.examples.allreduce_mpi BYTES COMPUTE_S``: an allreduce with mpi4py in every iteration.

Start it with ``testbed.client.mpirun``. It needs Open MPI and mpi4py (Debian: ``openmpi-bin``, ``python3-mpi4py``).
"""

from __future__ import annotations

import sys
import time
from importlib import import_module

from testbed import client


def main(size: int, compute_s: float) -> None:
    """Pause for ``compute_s``, then sum ``size`` bytes over all processes; again and again."""
    mpi = import_module("mpi4py.MPI")
    sent, summed = bytearray(size), bytearray(size)

    def allreduce() -> None:
        client.wait(mpi.COMM_WORLD.Iallreduce([sent, mpi.FLOAT], [summed, mpi.FLOAT]).Test)

    allreduce()  # opens the connections
    while True:
        with client.iteration():
            time.sleep(compute_s)
            with client.communication():
                allreduce()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
