"""Runs inside namespaces of its own: a private Open vSwitch, the controller, and real packets.

Usage: ``controller_live_driver.py DIRECTORY SCHEDULER``; prints one JSON document.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from controller.service.json_codec import encode
from topologies.addressing import address_of, datapath_id, interface_name, port_numbers
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.job import Flow, Job, Phase, Transfer

FABRIC = clos(hosts=4, gpus_per_host=1, nics_per_host=1, tors=2, aggregations=2, port_rate=1e9, fabric_rate=1e9)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def start_switches(directory: Path, fabric: Fabric) -> None:
    os.environ["OVS_RUNDIR"] = str(directory)
    database, remote = f"{directory}/conf.db", f"--db=unix:{directory}/db.sock"
    run("ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema")
    run("ovsdb-server", database, f"--remote=punix:{directory}/db.sock", "--detach", "--no-chdir", "--pidfile")
    run("ovs-vsctl", remote, "--no-wait", "init")
    run(
        "ovs-vswitchd",
        f"unix:{directory}/db.sock",
        "--detach",
        "--no-chdir",
        "--pidfile",
        f"--log-file={directory}/vswitchd.log",
    )
    run("ip", "link", "set", "lo", "up")
    done: set[str] = set()
    for link in fabric.network_links:
        if link.reverse not in done:
            ends = interface_name(fabric, link), interface_name(fabric, link.reverse)
            run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for end in ends:
                run("ip", "link", "set", end, "up")
            done.add(link.name)
    command = ["ovs-vsctl", remote]
    for switch in fabric.switches:
        identity = f"{datapath_id(fabric, switch):016x}"
        command += [
            "--",
            "add-br",
            switch,
            "--",
            "set",
            "bridge",
            switch,
            "datapath_type=netdev",
            "fail_mode=secure",
            "protocols=OpenFlow13",
            f"other-config:datapath-id={identity}",
        ]
    for name, number in port_numbers(fabric).items():
        interface = interface_name(fabric, name)
        command += [
            "--",
            "add-port",
            fabric.links[name].source,
            interface,
            "--",
            "set",
            "interface",
            interface,
            f"ofport_request={number}",
        ]
    for switch in fabric.switches:
        command += ["--", "set-controller", switch, "tcp:127.0.0.1:6653"]
        command += ["--", "set", "controller", switch, "connection-mode=out-of-band", "max_backoff=1000"]
    run(*command)


class Client:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, method: str, target: str, body: object = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._path)
        connection.request(method, target, None if body is None else json.dumps(body))
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        connection.close()
        if response.status != 200:
            raise SystemExit(f"{method} {target}: {response.status} {answer}")
        return answer


def job(name: str, hosts: tuple[int, int], first_port: int, flops: float) -> Job:
    flows = tuple(
        Flow(f"{name}/{index}", name, f"h{one}n0p0", f"h{other}n0p0", 1e6, first_port + index, 5000)
        for index, (one, other) in enumerate((hosts, hosts[::-1]))
    )
    phase = Phase(0.1, 0.0, "allreduce", tuple(Transfer(flow.id, flow.bytes) for flow in flows))
    return Job(name, "test", tuple(f"h{host}g0" for host in hosts), (phase,), flows, flops, 1)


def exchange(flow: Flow) -> dict[str, Any] | None:
    """Send one packet of ``flow`` and return how it arrives, None if it does not."""
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    listener.bind((flow.target, 0x0800))
    listener.settimeout(3)
    packet = (
        Ether(src="02:00:00:00:00:99", dst="02:00:00:00:00:98")
        / IP(src=address_of(FABRIC, flow.source), dst=address_of(FABRIC, flow.target))
        / TCP(sport=flow.source_port, dport=flow.target_port)
    )
    with listener, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((flow.source, 0))
        sender.send(bytes(packet))
        try:
            arrived = Ether(listener.recv(2000))
        except TimeoutError:
            return None
    return {"eth_dst": arrived.dst, "dscp": arrived[IP].tos >> 2, "source_port": arrived[TCP].sport}


def is_refused(switch: str) -> bool:
    """Connect as ``switch``, which is there already, and say whether the controller closes the connection."""
    identity = datapath_id(FABRIC, switch)
    features = struct.pack("!QIBB2xII", identity, 0, 254, 0, 0, 0)
    answers = {5: (6, features), 18: (19, struct.pack("!HH4x", 13, 0))}  # features and ports; nothing else
    with socket.create_connection(("127.0.0.1", 6653), timeout=10) as connection:
        connection.sendall(struct.pack("!BBHI", 4, 0, 8, 1))
        while head := connection.recv(8, socket.MSG_WAITALL):
            _, kind, length, number = struct.unpack("!BBHI", head)
            connection.recv(length - 8, socket.MSG_WAITALL)
            if kind in answers:
                reply, body = answers[kind]
                connection.sendall(struct.pack("!BBHI", 4, reply, 8 + len(body), number) + body)
    return True


def wait_for(client: Client, path: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if os.path.exists(path):
            state = client("GET", "/state")
            if state["expected"] and all(state["switches"].values()):
                return state
        time.sleep(0.05)
    raise SystemExit("the switches did not connect")


def main(directory: Path, scheduler: str) -> dict[str, Any]:
    start_switches(directory, FABRIC)
    path, fabric = str(directory / "rest.sock"), directory / "fabric.json"
    fabric.write_text(json.dumps(encode(FABRIC)))
    controller = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "controller",
            "--scheduler",
            scheduler,
            "--rest-port",
            "0",
            "--rest-socket",
            path,
            "--fabric",
            str(fabric),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    client = Client(path)
    result: dict[str, Any] = {"state": wait_for(client, path)}
    result["impostor_refused"] = is_refused("tor0")
    result["state_after"] = client("GET", "/state")
    jobs = [job("a", (0, 2), 20000, 1e12), job("b", (0, 2), 21000, 1e15)]
    result["posted"] = [
        client("POST", "/jobs", {"job": encode(one), "apply": apply})
        for one, apply in zip(jobs, ("now", "prepare"), strict=True)
    ]
    flows = [flow for one in jobs for flow in one.flows]
    result["before_commit"] = {flow.id: exchange(flow) for flow in flows}
    moved = [change["flow"] for change in result["posted"][1]["changes"]]
    result["committed"] = client("POST", "/commit", {"flows": moved})
    result["after_commit"] = {flow.id: exchange(flow) for flow in flows}
    result["rules"] = client("GET", "/rules")["rules"]
    result["observed_paths"] = client("GET", "/observed-paths")["paths"]
    result["deleted"] = [client("DELETE", f"/jobs/{one.name}") for one in jobs]
    result["left"] = client("GET", "/rules")["rules"]
    result["after_delete"] = exchange(flows[0])
    controller.send_signal(signal.SIGTERM)
    output, errors = controller.communicate(timeout=10)
    return {**result, "status": controller.returncode, "output": output, "errors": errors}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
