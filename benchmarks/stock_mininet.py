"""Inside the namespaces of :mod:`benchmarks.startup`: stock Mininet, timed. Not a benchmark by itself."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from mininet.link import Intf, TCIntf, TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo

from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.system import run_command
from topologies.shaping import Shaping, tc_commands

DIRECTORY: Final = Path("/run/openvswitch-of-benchmark")


class StrictPriorityIntf(TCIntf):  # type: ignore[misc]
    """An interface with the testbed's queues, set as Mininet sets its own: a shell command per tc setting."""

    mtu = 9000
    levels = 8
    buffer = 32 << 20

    def config(self, bw: float = 1.0, **params: Any) -> Any:
        """Configure; ``bw`` in Mbit/s of payload."""
        result = Intf.config(self, **params)
        for line in tc_commands(Shaping(self.name, bw * 1e6, self.mtu, self.buffer, self.levels)):
            self.cmd(f"tc {line}")
        return result


def _topology(request: dict[str, Any]) -> Any:
    topology = Topo()
    for host in request["hosts"]:
        topology.addHost(host)
    for number, switch in enumerate(request["switches"], start=1):
        topology.addSwitch(switch, dpid=f"{number:016x}", datapath="user", failMode="secure")
    for one, other, rate in request["cables"]:
        topology.addLink(one, other, bw=rate)
    return topology


def _timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def main() -> int:
    """Build, start and stop the network of the request; print the seconds and what stands as JSON."""
    request = json.load(sys.stdin)
    run_command(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    openvswitch = OpenVSwitch(DIRECTORY)
    openvswitch.start()
    os.environ.update({name: openvswitch.environment[name] for name in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR")})
    Mininet.inited = True  # or Mininet would raise system-wide sysctls and leave them raised
    network: list[Any] = []
    made: dict[str, float] = {
        "build": _timed(lambda: network.append(_network(request))),
        "start": _timed(lambda: network[0].start()),
    }
    classes = network[0].hosts[0].cmd("tc class show dev " + network[0].hosts[0].defaultIntf().name)
    made["classes"] = classes.count("class htb")
    made["stop"] = _timed(lambda: network[0].stop())
    openvswitch.stop()
    print(json.dumps(made), flush=True)
    return 0


def _network(request: dict[str, Any]) -> Any:
    link = TCLink
    if request["strict_priority"]:
        link = partial(TCLink, cls1=StrictPriorityIntf, cls2=StrictPriorityIntf)
    return Mininet(topo=_topology(request), switch=OVSSwitch, link=link, controller=None, build=True)


if __name__ == "__main__":
    raise SystemExit(main())
