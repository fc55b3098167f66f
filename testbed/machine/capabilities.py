"""What this machine can do for an emulation: read-only, and probed in a throw-away network namespace.

The facts come as :class:`Capability` rows; :func:`require_emulation` turns the first one that prevents
a run into one clear line.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from testbed.errors import CannotRunError
from testbed.machine import launcher_requests
from testbed.machine.datapaths import ONLY, choose, only
from testbed.machine.distribution import EXTRAS, installing, remedy
from testbed.machine.kernel_programs import missing_for_programs
from topologies.datapath import Datapath

_APT: Final = "run 'make setup', or: apt-get install "
_ENVIRONMENT: Final = (
    "it is installed, but only an environment of /usr/bin/python3 -m venv --system-site-packages sees it"
)
_TICK_FIELDS: Final = 8
_KERNEL_MODULE: Final = Path("/sys/module/openvswitch")

_TRIAL_TABLE: Final = (
    "table netdev trial { map out { typeof ip saddr . tcp dport : verdict; counter; }; chain leave { fwd to v1; }; "
    "chain forward { ip dscp set 8; ip saddr . tcp dport vmap @out; }; "
    "chain in { type filter hook ingress devices = { v0 } priority 0; goto forward; }; }; "
    "add element netdev trial out { 10.0.0.1 . 80 : goto leave }"
)
"""What the datapath ``nftables`` rests on: an ingress hook, a map, and packets that leave by another interface."""

_PROBES: Final[Mapping[str, str]] = {
    "veth": "ip link show v0",
    "htb": "tc qdisc add dev v0 root handle 1: htb default 1",
    "u32": "tc filter add dev v0 parent 1: protocol ip u32 match ip dsfield 0xe0 0xfc flowid 1:1",
    "prio": "tc qdisc replace dev v1 root handle 2: prio bands 8",
    "ets": "tc qdisc replace dev v1 root handle 3: ets bands 8 strict 8",
    "netem": "tc qdisc replace dev v1 root handle 4: netem delay 1ms",
    "tcp_rto_min_us": "test -e /proc/sys/net/ipv4/tcp_rto_min_us",
    "rps": "test -e /sys/class/net/lo/queues/rx-0/rps_cpus",
    "nftables": f"nft '{_TRIAL_TABLE}'",
}
_PREPARE: Final = "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up"


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing the machine has (``present``), lacks, or that could not be looked at (None).

    ``consequence`` says what that means for a run; ``required`` things stop an emulation when they
    are not there, and ``remedy`` says in one line what is wrong and how to get it.
    """

    name: str
    present: bool | None
    detail: str
    consequence: str = ""
    required: bool = False
    remedy: str = ""

    @property
    def blocking(self) -> bool:
        """True where this alone keeps an emulation from running."""
        return self.required and self.present is False


def findings() -> tuple[Capability, ...]:
    """Look at the whole machine; takes about a second, half of it to watch the CPU."""
    optional = (_extra(name) for name in EXTRAS if name != "emulation")
    return (*_needed_programs(), *_kernel(), *_resources(), *optional)


def require_emulation() -> None:
    """Raise ``CannotRunError``, one line, that names the first thing an emulation lacks here and how to get it."""
    for group in (_needed_programs, _kernel):
        for finding in group():
            if finding.blocking:
                raise CannotRunError(finding.remedy)


def _needed_programs() -> Iterable[Capability]:
    linux = platform.system() == "Linux"
    yield Capability(
        "Linux", linux, platform.release(), required=True, remedy="emulation needs Linux: namespaces and tc queues"
    )
    yield _extra("emulation")
    root = os.geteuid() == 0 or launcher_requests.present()
    yield Capability(
        "root",
        root,
        "yes" if root else f"user id {os.geteuid()}",
        "" if root else "plan, validate and compare only",
        required=True,
        remedy="emulation needs root: run with sudo",
    )
    yield _program("unshare", "util-linux")
    yield _program("setpriv", "util-linux")
    yield _program("ip", "iproute2")
    yield _program("tc", "iproute2")
    yield _program("ethtool", "ethtool")
    yield _program("ovs-vsctl", "openvswitch-switch", "--version")
    yield _program("ovs-vswitchd", "openvswitch-switch", "--version")
    yield _program("ovsdb-server", "openvswitch-switch")
    yield _mininet()
    yield _program("mnexec", "mininet")


def _extra(name: str) -> Capability:
    """Packages that this Python has or lacks; those of ``emulation`` alone stop an emulation."""
    extra = EXTRAS[name]
    lacks = ", ".join(extra.missing())
    return Capability(
        f"extra {name}",
        not lacks,
        f"no {lacks}" if lacks else "",
        f"{extra.without}: {installing(name)}" if lacks else "",
        required=name == "emulation",
        remedy=remedy(name),
    )


def _program(name: str, package: str, version_option: str | None = None) -> Capability:
    path = _where(name)
    detail = path or "not found"
    if path and version_option:
        detail = _last_word([path, version_option]) or path
    return Capability(
        name,
        path is not None,
        detail,
        "" if path else "no emulation",
        required=True,
        remedy=f"emulation needs {name}, which is not here: {_APT}{package}",
    )


def _where(program: str) -> str | None:
    # Without root PATH often lacks the places of system tools, which are there all the same.
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")))


def _mininet() -> Capability:
    present = find_spec("mininet") is not None
    try:
        detail = version("mininet") if present else "not importable"
    except PackageNotFoundError:
        detail = "version unknown"
    way = f"{_APT}mininet" if _where("mnexec") is None else _ENVIRONMENT
    return Capability(
        "Mininet",
        present,
        detail,
        "" if present else "no emulation",
        required=True,
        remedy=f"emulation needs Mininet, which this Python cannot import: {way}",
    )


def _last_word(command: list[str]) -> str:
    """Last word of the first line that ``command`` prints: where programs put their version."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.partition("\n")[0].split() or [""])[-1]


def _kernel() -> Iterable[Capability]:
    probed = probe_in_namespace()
    yield Capability(
        "namespaces",
        bool(probed),
        "",
        "" if probed else "no emulation",
        required=True,
        remedy="emulation needs to make network namespaces, which is forbidden here (a container without privileges?)",
    )
    shaping = "link rates and strict priority rest on it"
    yield _probed(probed, "veth", "emulated links are veth pairs", required=True)
    yield _probed(probed, "htb", shaping, required=True)
    yield _probed(probed, "u32", shaping, required=True)
    exact = probed.get("prio") or probed.get("ets")
    yield _probed(probed, "prio", "" if exact else "strict priority from HTB alone (over 99.9 % strict)")
    yield _probed(probed, "ets", "")
    yield _probed(probed, "netem", "" if probed.get("netem") else "no emulated link delay")
    yield _probed(
        probed, "tcp_rto_min_us", "" if probed.get("tcp_rto_min_us") else "starved flows may retransmit and count"
    )
    yield _probed(probed, "rps", "" if probed.get("rps") else "packets may overtake each other where CPUs are busy")
    yield from _datapaths(probed)
    missing = missing_for_programs()
    yield Capability("kernel programs", not missing, missing, "" if missing else "dctcp, cubic, mltcp, counted queues")
    borrowed = _has_pidfd_getfd()
    yield Capability(
        "pidfd_getfd",
        borrowed,
        "" if borrowed else "kernel before 5.6, or forbidden",
        "" if borrowed else "one full queue of a userspace switch can drop other ports' packets",
    )


def _probed(probed: Mapping[str, bool], name: str, consequence: str, required: bool = False) -> Capability:
    present = probed.get(name)
    if present is None:
        return Capability(name, None, "cannot be probed", "", required)
    said = consequence if not (present and required) else ""
    remedy = f"emulation needs '{name}' of the kernel, which this one lacks: {consequence}"
    return Capability(name, present, "", said, required, remedy)


def probe_in_namespace(names: Iterable[str] = tuple(_PROBES)) -> dict[str, bool]:
    """Try those of ``_PROBES`` in a new network namespace; empty where this user may not make one."""
    if launcher_requests.present():
        with contextlib.suppress(OSError, ValueError):
            return {str(name): bool(works) for name, works in launcher_requests.ask("probe", names=list(names)).items()}
    tries = (f"{_PROBES[name]} >&2; echo {name}=$?" for name in names if name in _PROBES)
    script = "\n".join(["exec 2>/dev/null", "echo made=0", _PREPARE, *tries])
    # A user who is not root may still be root of a user namespace of his own.
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            ["unshare", *own_user, "--net", "--mount", "sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env={**os.environ, "PATH": path},
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = dict(line.split("=") for line in done.stdout.splitlines() if "=" in line)
    return {name: found[name] == "0" for name in _PROBES if name in found}


def datapaths_here() -> dict[Datapath, str]:
    """Datapath -> why this machine lacks it, empty if it does not.

    Where a user may make no namespaces and nothing can be tried, what is installed counts as working. Raises
    ``BadInputError`` where the environment variable ``TESTBED_DATAPATHS`` names one that does not exist.
    """
    allowed = os.environ.get(ONLY, "")
    return only(_tried_datapaths(), allowed)


@cache
def _tried_datapaths() -> dict[Datapath, str]:
    return _missing_datapaths(probe_in_namespace(("veth", "nftables")))


def _missing_datapaths(probed: Mapping[str, bool]) -> dict[Datapath, str]:
    return {"kernel": _why_not_kernel(), "nftables": _why_not_nftables(probed), "userspace": ""}


def _why_not_kernel() -> str:
    if _KERNEL_MODULE.exists():
        return ""
    loadable = _where("modprobe") is not None and _succeeds(["modprobe", "--dry-run", "--quiet", "openvswitch"])
    return f"the kernel module openvswitch is not {'loaded (modprobe openvswitch)' if loadable else 'in this kernel'}"


def _why_not_nftables(probed: Mapping[str, bool]) -> str:
    if find_spec("nftables") is None:
        return "this Python has no module nftables ('make setup' installs it)"
    if _where("nft") is None:
        return "there is no program nft ('make setup' installs it)"
    # Without the pair of interfaces nothing has been tried.
    tried = probed.get("nftables") if probed.get("veth") else None
    return "this kernel takes no table of nftables that forwards packets" if tried is False else ""


def _datapaths(probed: Mapping[str, bool]) -> Iterable[Capability]:
    """A row for each datapath; that of the default says so."""
    missing = only(_missing_datapaths(probed), os.environ.get(ONLY, ""))
    default = choose(None, missing, switches_hash=False)
    nothing = "" if _where("ovs-vswitchd") else "there is no Open vSwitch"
    for name, why in missing.items():
        slow = ", and one thread for all switches: a small packet budget" if name == "userspace" else ""
        said = f"the default{slow}" if name == default.datapath else ""
        yield Capability(f"datapath {name}", not (why or nothing), why or nothing, said)


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _has_pidfd_getfd() -> bool:
    """Duplicate a descriptor of our own through the system call (438 on every architecture)."""
    try:
        process = os.pidfd_open(os.getpid())
    except (AttributeError, OSError):
        return False
    with open(os.devnull) as file:
        copy = int(ctypes.CDLL(None, use_errno=True).syscall(438, process, file.fileno(), 0))
    os.close(process)
    if copy >= 0:
        os.close(copy)
    return copy >= 0


def _resources() -> Iterable[Capability]:
    cores = len(os.sched_getaffinity(0))
    yield Capability("cores", cores >= 2, str(cores), "" if cores >= 2 else "switches and workers share one core")
    memory = available_memory()
    enough = memory >= 2 << 30
    yield Capability("memory", enough, f"{memory / 2**30:.1f} GiB free", "" if enough else "large fabrics may not fit")
    load = os.getloadavg()[0]
    quiet = load < cores / 2
    yield Capability("load", quiet, f"{load:.2f}", "" if quiet else "other work disturbs a measurement")
    stolen = stolen_share(0.5)
    calm = stolen < 0.02
    yield Capability("stolen CPU", calm, f"{stolen:.1%}", "" if calm else "neighbours take CPU: runs may be extended")


def available_memory() -> int:
    """Bytes that new processes can have without swapping; 0 where the kernel does not say."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def stolen_share(seconds: float) -> float:
    """Share of all CPU time that the hypervisor gave to others during the next ``seconds``."""
    before = _ticks()
    time.sleep(seconds)
    passed = [after - earlier for after, earlier in zip(_ticks(), before, strict=True)]
    return passed[7] / max(1, sum(passed))


def _ticks() -> list[int]:
    fields = Path("/proc/stat").read_text("ascii").partition("\n")[0].split()[1:]
    return [int(field) for field in fields[:_TICK_FIELDS]]
