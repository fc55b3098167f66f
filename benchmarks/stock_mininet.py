"""Inside the namespaces of :mod:`benchmarks.startup`: stock Mininet, timed. Not a benchmark by itself."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo

from topologies.mininet_adapter.openvswitch import OpenVSwitch
from topologies.mininet_adapter.system import run_command

DIRECTORY: Final = Path("/run/openvswitch-of-benchmark")


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
    """Build, start and stop the network of the request; print the seconds as JSON."""
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    run_command(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    openvswitch = OpenVSwitch(DIRECTORY)
    openvswitch.start()
    os.environ.update({name: openvswitch.environment[name] for name in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR")})
    Mininet.inited = True  # or Mininet would raise system-wide sysctls and leave them raised
    network: list[Any] = []
    made = {
        "build": _timed(lambda: network.append(_network(request))),
        "start": _timed(lambda: network[0].start()),
    }
    missing = [str(switch) for switch in network[0].switches if not switch.connected() and not switch.intfs]
    made["stop"] = _timed(lambda: network[0].stop())
    openvswitch.stop()
    print(json.dumps(made), flush=True)
    return 1 if missing else 0


def _network(request: dict[str, Any]) -> Any:
    return Mininet(topo=_topology(request), switch=OVSSwitch, link=TCLink, controller=None, build=True)


if __name__ == "__main__":
    raise SystemExit(main())
