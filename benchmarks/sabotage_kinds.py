"""Ways to disturb a run from outside, and how its verdict names each."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.experiment.experiment import Scale
from topologies.addressing import interface_name, port_number
from topologies.datapath import DATAPATHS, Datapath
from topologies.fabric import Fabric
from topologies.mininet_adapter.datapaths.nft_table import five_tuple, output_to
from topologies.mininet_adapter.datapaths.nft_table import read as read_table
from topologies.shaping import LEAF_HANDLE, Shaping

LINK: Final = "tor1->h1n0p0"
"""Carries the ring of job ``big`` whatever path its flows take."""
LASTS_S: Final = 4.0
STOP_S: Final = 0.3
QUOTA: Final = (3_000, 100_000)
"""Microseconds of CPU time in each period: what forwarding this little traffic takes is more."""
_GROUPS: Final = Path("/sys/fs/cgroup")
_SWITCHES: Final = "/run/testbed/openvswitch"


class NotPossibleError(Exception):
    """This machine does not let that be done; the text says why."""


@dataclass(frozen=True)
class Target:
    """A run under way: its processes as seen from outside, and its fabric."""

    inside: int
    openvswitch: int
    workers: tuple[int, ...]
    fabric: Fabric
    scale: Scale
    datapath: Datapath

    def enter(self, *command: str) -> str:
        """Run ``command`` in the network and mount namespaces of the run's switches; return what it says."""
        # With the run's processes in view too: tc takes the length of the kernel's tick from /proc/self/net.
        arguments = ["nsenter", f"--target={self.inside}", "--net", "--mount", "--pid", "--", *command]
        environment = dict(os.environ, OVS_RUNDIR=_SWITCHES)
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()}")
        return done.stdout

    @property
    def shaping(self) -> Shaping:
        """How the interface that sends on :data:`LINK` is shaped."""
        rate = self.scale.rate(self.fabric.links[LINK].capacity)
        return Shaping(interface_name(self.fabric, LINK), rate, self.scale.mtu, 0)

    def towards(self, link: str) -> str:
        """The interface that sends on ``link``."""
        return interface_name(self.fabric, self.fabric.links[link])

    def output(self, link: str) -> str:
        """What the kernel's table holds for a flow that is sent on ``link``."""
        return output_to(self.towards(link))

    def nft(self, commands: str) -> str:
        """Have nftables carry out ``commands`` in the run's namespace, as one transaction."""
        return self.enter("nft", commands)

    def openflow(self, verb: str, switch: str, *rest: str) -> str:
        """Talk to a switch as anybody on the machine could, past the controller."""
        command = ["ovs-ofctl", "--strict", "-O", "OpenFlow13", verb, f"unix:{_SWITCHES}/{switch}.mgmt", *rest]
        return self.enter(*command)


@dataclass(frozen=True)
class Kind:
    """A way to disturb a run, and how its verdict names it: the kind of a finding and words in it.

    ``datapaths``: where it disturbs anything.
    """

    act: Callable[[Target], None]
    finding: str
    words: str
    summary: str
    datapaths: tuple[Datapath, ...] = DATAPATHS


def hog(_target: Target) -> None:
    """Two busy loops per core."""
    code = f"import time\nend = time.monotonic() + {LASTS_S}\nwhile time.monotonic() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    for loop in loops:
        loop.wait()


def quota(target: Target) -> None:
    """Open vSwitch may use hardly any CPU time."""
    with _control_group() as group:
        home = _group_of(target.openvswitch, group)
        try:
            (group / "cgroup.procs").write_text(str(target.openvswitch))
            time.sleep(LASTS_S)
        finally:
            with contextlib.suppress(OSError):  # the run, and with it the process, may be gone
                (home / "cgroup.procs").write_text(str(target.openvswitch))


@contextlib.contextmanager
def _control_group() -> Iterator[Path]:
    """A control group with :data:`QUOTA`, of whichever version of cgroups carries the CPU controller."""
    name = f"testbed-sabotage-{os.getpid()}"
    old, new = _GROUPS / "cpu", _GROUPS / "cgroup.controllers"
    if (old / "cpu.cfs_quota_us").exists() or (old / "cpu.cfs_period_us").exists():
        group, files = old / name, {"cpu.cfs_period_us": str(QUOTA[1]), "cpu.cfs_quota_us": str(QUOTA[0])}
    elif new.exists() and "cpu" in (_GROUPS / "cgroup.subtree_control").read_text().split():
        group, files = _GROUPS / name, {"cpu.max": f"{QUOTA[0]} {QUOTA[1]}"}
    else:
        raise NotPossibleError("no control group with a CPU quota can be made here")
    try:
        group.mkdir()
        for file, value in files.items():
            (group / file).write_text(value)
    except OSError as error:
        raise NotPossibleError(f"{group}: {error.strerror}") from error
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    for _ in range(50):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def _group_of(pid: int, beside: Path) -> Path:
    """The control group in which ``pid`` is, in the hierarchy of ``beside``."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if ("cpu" in controllers.split(",")) == (beside.parent != _GROUPS):
            return beside.parent / path.lstrip("/")
    return beside.parent


def slow_link(target: Target) -> None:
    """A link at 80 % of its rate."""
    shaping = target.shaping
    change = f"tc class change dev {shaping.interface} parent 1: classid 1:1 htb"
    for share, seconds in ((0.8, LASTS_S), (1.0, 0.0)):
        rate = f"{round(share * shaping.wire_rate)}bit"
        target.enter(*f"{change} rate {rate} ceil {rate} burst {shaping.burst} cburst {shaping.burst}".split())
        time.sleep(seconds)


def wiped_queue(target: Target) -> None:
    """All queues of a link taken away."""
    target.enter(*f"tc qdisc del dev {target.shaping.interface} root".split())


def missing_filter(target: Target) -> None:
    """The filter taken away that leads to the highest level of a link."""
    interface = target.shaping.interface
    shown = target.enter(*f"tc filter show dev {interface} parent 1:".split())
    found = re.search(rf"fh (\S+) order \d+ .*flowid 1:{LEAF_HANDLE:x}\b", shown)
    if found is None:
        raise NotPossibleError("the filters are of another kind here")
    target.enter(*f"tc filter del dev {interface} parent 1: protocol ip prio 1 handle {found[1]} u32".split())


def link_down(target: Target) -> None:
    """A link between switches set down, to stay so: the one that carries the busiest flow from ``tor0``."""
    link = f"tor0->agg{_busiest_uplink(target)}"
    target.enter("ip", "link", "set", target.towards(link), "down")


def _busiest_uplink(target: Target) -> int:
    """Number of the aggregation switch to which ``tor0`` has sent most packets."""
    sent = {}
    for index in (0, 1):
        told = json.loads(target.enter("ip", "-s", "-j", "link", "show", "dev", target.towards(f"tor0->agg{index}")))
        sent[index] = int(told[0]["stats64"]["tx"]["packets"])
    return max(sent, key=lambda index: sent[index])


def detour(target: Target) -> None:
    """A flow moved to the other aggregation switch, to stay there."""
    for switch, rule in _detour(target)[0]:
        target.openflow(rule[0], switch, *rule[1:])


def short_detour(target: Target) -> None:
    """A flow moved to the other aggregation switch and back again, where packets are really forwarded."""
    if target.datapath == "nftables":
        there_and_back(target)
        return
    there, back = _detour(target)
    for rules, seconds in ((there, LASTS_S), (back, 0.0)):
        for switch, rule in rules:
            target.openflow(rule[0], switch, *rule[1:])
        time.sleep(seconds)


Rules = list[tuple[str, tuple[str, ...]]]


def _detour(target: Target) -> tuple[Rules, Rules]:
    """Commands that move the busiest flow from ``tor0`` to ``tor1`` to the other aggregation switch, and back."""
    fabric = target.fabric
    outputs = {port_number(fabric, f"tor0->agg{index}"): index for index in (0, 1)}
    best: tuple[int, str, int, str] | None = None
    for line in target.openflow("dump-flows", "tor0").splitlines():
        found = re.search(r"n_packets=(\d+).*?(priority=\S+) actions=(\S*output:(\S+))", line)
        if found is None or not found[4].isdigit() or int(found[4]) not in outputs:
            continue
        if best is None or int(found[1]) > best[0]:
            best = int(found[1]), found[2], outputs[int(found[4])], found[3]
    if best is None:
        raise RuntimeError("tor0 holds no rule towards an aggregation switch")
    _, match, now, actions = best
    other = 1 - now
    there = actions.replace(
        f"output:{port_number(fabric, f'tor0->agg{now}')}", f"output:{port_number(fabric, f'tor0->agg{other}')}"
    )
    beyond = f"{match},actions=output:{port_number(fabric, f'agg{other}->tor1')}"
    return (
        [(f"agg{other}", ("add-flow", beyond)), ("tor0", ("mod-flows", f"{match},actions={there}"))],
        [("tor0", ("mod-flows", f"{match},actions={actions}")), (f"agg{other}", ("del-flows", match))],
    )


def there_and_back(target: Target) -> None:
    """A flow moved in the kernel's table."""
    out, key, now, other = busiest_output(target)
    beyond = f"netdev testbed out-agg{other} {{ {key} : {target.output(f'agg{other}->tor1')} }}"
    move = "delete element netdev testbed {0} {{ {1} }}; add element netdev testbed {0} {{ {1} : {2} }}"
    target.nft(f"add element {beyond}; {move.format(out, key, target.output(f'tor0->agg{other}'))}")
    time.sleep(LASTS_S)
    target.nft(f"{move.format(out, key, target.output(f'tor0->agg{now}'))}; delete element {beyond}")


def busiest_output(target: Target) -> tuple[str, str, int, int]:
    """Map and key of the busiest flow from ``tor0`` to ``tor1`` in the kernel's table.

    Then the number of the aggregation switch that it passes, and that of the other one.
    """
    held = read_table(target.nft("list table netdev testbed"))
    uplinks = {target.output(f"tor0->agg{index}"): index for index in (0, 1)}
    packets = {match: count for (switch, match), count in held.packets.items() if switch == "tor0"}
    outputs = [element for element in held.elements if element.map == "out-tor0" and element.value in uplinks]
    best = max(outputs, key=lambda element: packets[five_tuple(element.key)])
    return best.map, best.key, uplinks[best.value], 1 - uplinks[best.value]


def removed_element(target: Target) -> None:
    """The output of a flow removed from the kernel's table."""
    out, key, _, _ = busiest_output(target)
    target.nft(f"delete element netdev testbed {out} {{ {key} }}")


def wrong_port(target: Target) -> None:
    """The output of a flow in the kernel's table pointed to the other aggregation switch, which knows nothing of it."""
    out, key, _, other = busiest_output(target)
    output = target.output(f"tor0->agg{other}")
    change = f"delete element {{0}} {{{{ {key} }}}}; add element {{0}} {{{{ {key} : {output} }}}}"
    target.nft(change.format(f"netdev testbed {out}"))


def wrong_mark(target: Target) -> None:
    """The mark of a flow in the kernel's table changed to another level's."""
    _, key, _, _ = busiest_output(target)
    held = read_table(target.nft("list table netdev testbed")).elements
    now = next(element.value for element in held if element.map == "level-tor0" and element.key == key)
    other = "jump dscp-8" if now != "jump dscp-8" else "jump dscp-16"
    change = f"delete element {{0}} {{{{ {key} }}}}; add element {{0}} {{{{ {key} : {other} }}}}"
    target.nft(change.format("netdev testbed level-tor0"))


def stopped_worker(target: Target) -> None:
    """A worker stopped for 300 ms."""
    process = os.pidfd_open(target.workers[0])
    try:
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        time.sleep(STOP_S)
    finally:
        signal.pidfd_send_signal(process, signal.SIGCONT)
        os.close(process)


_BY_TABLE: Final[tuple[Datapath, ...]] = ("nftables",)
KINDS: Final[Mapping[str, Kind]] = {
    "hog": Kind(hog, "neighbours", "other processes took", "two busy loops per core for 4 s"),
    "quota": Kind(
        quota, "quota", "held ovs-vswitchd back", "CPU quota of 3 % on Open vSwitch for 4 s", datapaths=("userspace",)
    ),
    "slow-link": Kind(slow_link, "setting", f"link {LINK}: the shaper was set from", "a link at 80 % for 4 s"),
    "wiped-queue": Kind(wiped_queue, "setting", f"link {LINK}: the shaper is gone", "a link's queues deleted"),
    "missing-filter": Kind(missing_filter, "setting", f"link {LINK}: the filter of DSCP", "a DSCP filter deleted"),
    "link-down": Kind(link_down, "link", "was down", "a link between switches set down, for good"),
    "detour": Kind(detour, "path", "", "a flow moved to another path behind the controller's back"),
    "short-detour": Kind(short_detour, "path", "", "a flow moved for 4 s, and back"),
    "removed-element": Kind(
        removed_element, "path", "lacks the output", "a flow removed from the kernel's table", datapaths=_BY_TABLE
    ),
    "wrong-port": Kind(
        wrong_port, "path", "as the output", "a flow sent to another port by the kernel's table", datapaths=_BY_TABLE
    ),
    "wrong-mark": Kind(
        wrong_mark, "path", "as the mark", "a flow marked otherwise by the kernel's table", datapaths=_BY_TABLE
    ),
    "stopped-worker": Kind(stopped_worker, "standstill", "the worker of host", "a worker stopped for 300 ms"),
}
