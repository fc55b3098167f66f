"""``python3 -m testbed.client.examples.step_torch PARAMETERS COMPUTE_S``: data-parallel steps with torch.distributed.

Every step computes a loss, pauses for ``COMPUTE_S`` in place of a GPU, and averages the gradients of a linear layer
with PARAMETERS parameters by gloo. It needs PyTorch (Debian: ``python3-torch``).
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from testbed import client


def main(parameters: int, compute_s: float) -> None:
    """Train; again and again."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", os.environ["TESTBED_INTERFACE"])
    torch, distributed = import_module("torch"), import_module("torch.distributed")
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"tcp://{os.environ['TESTBED_ADDRESSES'].split(',')[0]}:{os.environ['TESTBED_PORT']}",
        rank=int(os.environ["TESTBED_RANK"]),
        world_size=int(os.environ["TESTBED_WORLD_SIZE"]),
    )
    layer = torch.nn.Linear(parameters, 1, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    sample = torch.ones(1, parameters) / parameters

    def step() -> None:
        optimizer.zero_grad()
        layer(sample).pow(2).sum().backward()
        time.sleep(compute_s)
        with client.communication():
            distributed.all_reduce(layer.weight.grad)
        layer.weight.grad /= distributed.get_world_size()
        optimizer.step()

    step()  # opens the connections
    while True:
        with client.iteration():
            step()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
