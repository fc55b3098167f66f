from __future__ import annotations

from testbed.engines.emulation.external.connections import (
    declared_per_port,
    ends_of,
    opposite,
    ports_of,
    with_connections,
)
from testbed.engines.emulation.external.sock_diag import LISTEN, TIME_WAIT, TcpSocket
from topologies.clos import clos
from workloads.build import JobSpec, build_jobs
from workloads.external import ExternalCommand

FABRIC = clos(hosts=3, gpus_per_host=1, nics_per_host=1, tors=3, aggregations=1, port_rate=1e9, fabric_rate=1e9)
JOB = build_jobs(
    [
        JobSpec(
            "real",
            "",
            placement=("h0g0", "h1g0"),
            communication_bytes=1e6,
            flops=1e12,
            external=ExternalCommand(("true",), communication=1e6),
        )
    ],
    FABRIC,
)[0]
PORTS = ports_of(JOB, FABRIC)
ENDS = ("h0n0p0", 61000, "h1n0p0", 4000)


def connection(state: int = 1, address: str = "10.0.0.1", peer: str = "10.0.1.1") -> TcpSocket:
    return TcpSocket(state, address, 61000, peer, 4000, 7)


def test_a_socket_between_two_hosts_of_the_job_is_one_of_its_flows() -> None:
    assert ends_of(connection(), PORTS) == ENDS


def test_other_sockets_are_none_of_its_flows() -> None:
    for other in (
        connection(LISTEN),
        connection(TIME_WAIT),
        connection(peer="127.0.0.1"),
        connection(peer="10.0.2.1"),  # a host of the fabric, but not of the job
        connection(peer="10.0.0.1"),
    ):
        assert ends_of(other, PORTS) is None


def test_a_connection_becomes_two_flows_with_the_ports_of_the_program() -> None:
    found = with_connections(JOB, [ENDS], {}, None)
    assert {(f.source, f.source_port, f.target, f.target_port) for f in found.flows} == {ENDS, opposite(ENDS)}
    assert all(flow.two_way and flow.job == "real" for flow in found.flows)
    assert {transfer.flow for transfer in found.phases[0].transfers} == {flow.id for flow in found.flows}


def test_declared_bytes_are_divided_evenly_until_they_are_measured() -> None:
    declared = declared_per_port(JOB)
    assert declared == 1e6  # a ring of two sends what it is given
    control = ("h0n0p0", 61002, "h1n0p0", 4001)
    assert {flow.bytes for flow in with_connections(JOB, [ENDS, control], {}, declared).flows} == {5e5}
    measured = with_connections(JOB, [ENDS, control], {ENDS: 9e5, opposite(ENDS): 8e5}, declared)
    assert sorted(flow.bytes for flow in measured.flows) == [0.0, 0.0, 8e5, 9e5]


def test_what_nobody_declares_counts_as_next_to_nothing() -> None:
    assert [flow.bytes for flow in with_connections(JOB, [ENDS], {}, None).flows] == [1.0, 1.0]
