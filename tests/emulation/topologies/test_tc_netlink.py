"""Queues set over netlink are those that ``tc`` sets, and what the kernel refuses is named."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from topologies.mininet_adapter.system import CommandError, network_namespace_of, run_batch
from topologies.mininet_adapter.tc_netlink import run_tc
from topologies.shaping import Shaping, rate_commands, tc_commands

pytestmark = pytest.mark.emulation


@pytest.fixture(autouse=True)
def own_namespace() -> Iterator[None]:
    """A network namespace with two interfaces, entered for the test."""
    command = ["unshare", "--net", "sh", "-c", "echo there; read line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        holder.stdout.readline()
        with network_namespace_of(holder.pid):
            run_batch("ip", ["link add one type veth peer two", "link set one up", "link set two up"])
            yield
        holder.stdin.close()


def shaping(interface: str, rate: float) -> Shaping:
    return Shaping(interface, rate, 9000, 1 << 20)


def shown(interface: str) -> str:
    """What ``tc`` says of an interface, without its name and what it counts."""
    said = [
        subprocess.run(["tc", kind, "show", "dev", interface], capture_output=True, text=True, check=True).stdout
        for kind in ("qdisc", "class", "filter")
    ]
    return re.sub(r"direct_packets_stat \d+", "", "".join(said).replace(f"dev {interface} ", ""))


def test_classes_queues_and_filters_are_those_of_tc() -> None:
    run_batch("tc", tc_commands(shaping("one", 15.38e6)))
    run_tc(tc_commands(shaping("two", 15.38e6)))
    assert shown("two") == shown("one")
    assert "htb 1:17" in shown("two")


def test_so_are_rates_changed_in_place() -> None:
    for interface in ("one", "two"):
        run_batch("tc", tc_commands(shaping(interface, 15.38e6)))
    run_batch("tc", rate_commands(shaping("one", 25e6)))
    run_tc(rate_commands(shaping("two", 25e6)))
    assert shown("two") == shown("one")


def test_what_the_kernel_refuses_is_named_and_what_came_before_is_done() -> None:
    lines = [*tc_commands(shaping("one", 1e6)), "qdisc add dev one root handle 1: htb default 17"]
    with pytest.raises(CommandError, match=r"^tc qdisc add dev one root handle 1: htb default 17: "):
        run_tc(lines)
    assert "htb 1:17" in shown("one")


def test_an_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="there is no interface three"):
        run_tc(tc_commands(shaping("three", 1e6)))


def test_lines_of_other_kinds_are_left_to_tc() -> None:
    run_tc(["qdisc add dev one clsact"])
    assert "clsact" in shown("one")
