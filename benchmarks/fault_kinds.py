"""What can happen to a run: its processes, its links, its rules, its disk, its outputs, signals, and two at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.leftovers import named_processes
from benchmarks.sabotage_kinds import LINK, Target, link_down

PAUSE_S: Final = 3.0
"""For how long the command itself is stopped: nobody else lets it go on."""
CAPACITY: Final = 4 << 20
"""Bytes of the file system that is filled: enough for the record of a small run."""


@dataclass(frozen=True)
class Scene:
    """A run under way: the command's process, what it started, its fabric, its run directories, what it says."""

    run: subprocess.Popen[bytes]
    target: Target
    out: Path

    def processes(self, name: str) -> tuple[int, ...]:
        """The processes of that name; the command itself is ``the command``."""
        return (self.run.pid,) if name == "the command" else named_processes(self.run.pid).get(name, ())


Act = Callable[[Scene], None]


@dataclass(frozen=True)
class Fault:
    """Something that happens to a run.

    ``says``: words of its last line, or of the verdict's reasons if it goes on, where these are to name something;
    ``silent``: nobody can say a line, for the kernel ends the command or its output is closed. ``redirect``: how a
    shell starts it. ``pipes``: its outputs are pipes, which the fault may close. ``small_disk``: its directory is a
    file system of :data:`CAPACITY`.
    """

    act: Act
    says: str = ""
    silent: bool = False
    redirect: str = ""
    pipes: bool = False
    small_disk: bool = False


def sent(number: signal.Signals, name: str) -> Act:
    """Send a signal to the first process of this name."""

    def act(scene: Scene) -> None:
        os.kill(scene.processes(name)[0], number)

    return act


def paused(number: signal.Signals, name: str) -> Act:
    """Stop a process, and let it go on after :data:`PAUSE_S`."""

    def act(scene: Scene) -> None:
        (pid,) = scene.processes(name)[:1]
        os.kill(pid, number)
        time.sleep(PAUSE_S)
        os.kill(pid, signal.SIGCONT)

    return act


def both(*acts: Act) -> Act:
    """One fault right after the other."""

    def act(scene: Scene) -> None:
        for each in acts:
            each(scene)

    return act


def nothing(_scene: Scene) -> None:
    """What is wrong was wrong from the start."""


def flushed(scene: Scene) -> None:
    """Every rule by which packets are really forwarded is removed."""
    if scene.target.datapath == "nftables":
        scene.target.nft("flush table netdev testbed")
        return
    for switch in scene.target.fabric.switches:
        scene.target.openflow("del-flows", switch)


def fabric_link_down(scene: Scene) -> None:
    """The busiest link between switches is set down."""
    link_down(scene.target)


def access_link_down(scene: Scene) -> None:
    """A host's link is set down at the switch."""
    scene.target.enter("ip", "link", "set", scene.target.towards(LINK), "down")


def nic_down(scene: Scene) -> None:
    """A host's link is set down at the host."""
    link = scene.target.fabric.links[LINK].reverse
    shell = scene.processes("a host's shell")[1]
    command = ["nsenter", f"--target={shell}", "--net", "ip", "link", "set", scene.target.towards(link), "down"]
    subprocess.run(command, check=True, capture_output=True)


def link_removed(scene: Scene) -> None:
    """A link between switches is deleted."""
    scene.target.enter("ip", "link", "delete", scene.target.towards("tor0->agg0"))


def filled(scene: Scene) -> None:
    """The file system of the run directory is full."""
    with (scene.out / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass


def removed(scene: Scene) -> None:
    """The run directory is removed, with the folder that it is in."""
    shutil.rmtree(scene.out)


def closed(*names: str) -> Act:
    """Nobody reads these outputs any more."""

    def act(scene: Scene) -> None:
        for stream in (getattr(scene.run, name) for name in names):
            stream.close()

    return act


KILL, STOP = signal.SIGKILL, signal.SIGSTOP
_PROCESSES: Final[Mapping[str, Fault]] = {
    "command killed": Fault(sent(KILL, "the command"), silent=True),
    "command stopped 3 s": Fault(paused(STOP, "the command")),
    "unshare killed": Fault(sent(KILL, "unshare"), "first process ended"),
    "unshare stopped": Fault(sent(STOP, "unshare")),
    "first process killed": Fault(sent(KILL, "the first process"), "first process ended"),
    "first process stopped": Fault(sent(STOP, "the first process"), "is stopped"),
    "first process SIGTERM": Fault(sent(signal.SIGTERM, "the first process")),
    "ovsdb-server killed": Fault(sent(KILL, "ovsdb-server"), "ovsdb-server ended"),
    "ovsdb-server stopped": Fault(sent(STOP, "ovsdb-server")),
    "ovs-vswitchd killed": Fault(sent(KILL, "ovs-vswitchd"), "ovs-vswitchd ended"),
    "ovs-vswitchd stopped": Fault(sent(STOP, "ovs-vswitchd"), "ovs-vswitchd has been stopped"),
    "controller killed": Fault(sent(KILL, "the controller"), "the controller was ended"),
    "controller stopped": Fault(sent(STOP, "the controller"), "the controller has been stopped"),
    "worker killed": Fault(sent(KILL, "a worker"), "was ended by a signal"),
    "worker stopped": Fault(sent(STOP, "a worker"), "the worker of host"),
    "host's shell killed": Fault(sent(KILL, "a host's shell"), "namespace of host"),
    "host's shell stopped": Fault(sent(STOP, "a host's shell")),
}
_NETWORK: Final[Mapping[str, Fault]] = {
    "forwarding table flushed": Fault(flushed, "invalid"),
    "link between switches down": Fault(fabric_link_down, "was down"),
    "link to a host down": Fault(access_link_down, "was down"),
    "NIC of a host down": Fault(nic_down, "was down"),
    "link removed": Fault(link_removed, "was removed"),
}
_FILES: Final[Mapping[str, Fault]] = {
    "disk full": Fault(filled, "No space left", small_disk=True),
    "directory removed": Fault(removed, "removed meanwhile"),
    "stdout closed meanwhile": Fault(closed("stdout"), pipes=True, silent=True),
    "stderr closed meanwhile": Fault(closed("stderr"), pipes=True, silent=True),
    "both closed meanwhile": Fault(closed("stdout", "stderr"), pipes=True, silent=True),
    "stdin closed": Fault(nothing, redirect="<&-"),
    "stdout closed": Fault(nothing, redirect=">&-"),
    "stderr closed": Fault(nothing, redirect="2>&-", silent=True),
    "all closed": Fault(nothing, redirect="<&- >&- 2>&-", silent=True),
    "stdout full": Fault(nothing, "No space left", redirect=">/dev/full"),
}
_ENDS: Final = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "XCPU", "IO", "PWR", "STKFLT")
_FAULTS: Final = ("ABRT", "SEGV", "BUS", "FPE", "ILL", "TRAP", "SYS")
_IGNORED: Final = ("PIPE", "XFSZ", "CHLD", "URG", "WINCH", "CONT")
_STOPS: Final = ("TSTP", "TTIN", "TTOU")


def _signals() -> dict[str, Fault]:
    ends = {
        name: Fault(sent(number, "the command"), "interrupted" if name == "SIGINT" else f"ended by {number.name}")
        for name, number in _numbered(_ENDS)
    }
    faults = {name: Fault(sent(number, "the command"), silent=True) for name, number in _numbered(_FAULTS)}
    ignored = {name: Fault(sent(number, "the command")) for name, number in _numbered(_IGNORED)}
    return ends | faults | ignored | {name: Fault(paused(n, "the command")) for name, n in _numbered(_STOPS)}


def _numbered(names: Sequence[str]) -> list[tuple[str, signal.Signals]]:
    return [(f"SIG{name}", signal.Signals[f"SIG{name}"]) for name in names if hasattr(signal, f"SIG{name}")]


_TWO: Final[Mapping[str, Fault]] = {
    "worker and ovsdb-server killed": Fault(both(sent(KILL, "a worker"), sent(KILL, "ovsdb-server"))),
    "first process stopped, directory removed": Fault(both(sent(STOP, "the first process"), removed), "is stopped"),
    "link down, controller stopped": Fault(both(fabric_link_down, sent(STOP, "the controller")), "has been stopped"),
    "worker stopped, SIGTERM": Fault(both(sent(STOP, "a worker"), sent(signal.SIGTERM, "the command")), "SIGTERM"),
    "first process stopped, SIGINT": Fault(
        both(sent(STOP, "the first process"), sent(signal.SIGINT, "the command")), "interrupted"
    ),
    "disk full, worker killed": Fault(both(filled, sent(KILL, "a worker")), small_disk=True),
    "SIGTERM twice": Fault(both(*[sent(signal.SIGTERM, "the command")] * 2), "ended by SIGTERM"),
}

FAULTS: Final[Mapping[str, Fault]] = {**_PROCESSES, **_NETWORK, **_FILES, **_signals(), **_TWO}
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "processes": tuple(_PROCESSES),
    "network": tuple(_NETWORK),
    "files": tuple(_FILES),
    "signals": tuple(_signals()),
    "two": tuple(_TWO),
}
