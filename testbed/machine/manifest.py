"""What a run was made with: versions, kernel, network settings, CPU, commit, command line.

Only reads; a value that is missing on a machine is null in the manifest and never an error.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from testbed.machine.distribution import DISTRIBUTION

PACKAGES: Final = (
    DISTRIBUTION,
    "mininet",
    "ryu",
    "os-ken",
    "eventlet",
    "pydantic",
    "pyyaml",
    "numpy",
    "numba",
    "scapy",
    "matplotlib",
    "rich",
)

SYSCTLS: Final = (
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)


def collect(
    *,
    command: Sequence[str],
    seed: int,
    scenario_yaml: str,
    scale: Mapping[str, float],
    extra: Mapping[str, object] | None = None,
    root: Path = Path("/"),
) -> dict[str, Any]:
    """The document ``manifest.json``.

    ``command`` is the command line; ``scenario_yaml`` the resolved scenario, hashed with SHA-256;
    ``extra`` what an engine adds (queueing disciplines, Open vSwitch); ``root`` where /proc is.
    """
    return {
        "command": list(command),
        "scenario_sha256": hashlib.sha256(scenario_yaml.encode()).hexdigest(),
        "seed": seed,
        "scale": dict(scale),
        "git_commit": git_commit(Path(__file__).resolve().parent),
        "versions": versions(),
        "kernel": {"release": platform.release(), "version": platform.version(), "machine": platform.machine()},
        "cpu": {"model": cpu_model(root), "cores": os.cpu_count()},
        "memory_bytes": memory_bytes(root),
        "sysctls": {name: sysctl(name, root) for name in SYSCTLS},
        **(extra or {}),
    }


def versions() -> dict[str, str | None]:
    """Python's version and those of the packages a run may use."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def sysctl(name: str, root: Path = Path("/")) -> str | None:
    """The value of one kernel setting; None where the kernel has no such setting."""
    text = _read(root / "proc/sys" / name.replace(".", "/"))
    return None if text is None else " ".join(text.split())


def cpu_model(root: Path = Path("/")) -> str | None:
    """The CPU's name as the kernel prints it."""
    for line in (_read(root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("model name", "hardware"):
            return value.strip()
    return None


def memory_bytes(root: Path = Path("/")) -> int | None:
    """Total memory of the machine."""
    for line in (_read(root / "proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def git_commit(start: Path) -> str | None:
    """The commit checked out in the repository around ``start``.

    Read from the files: git itself refuses a checkout that belongs to another user, which is what
    a run through sudo is.
    """
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if marker.exists():
            return _head(_git_directory(marker))
    return None


def _git_directory(marker: Path) -> Path:
    pointer = _read(marker) if marker.is_file() else None
    return (marker.parent / pointer.partition(":")[2].strip()) if pointer else marker


def _head(git: Path) -> str | None:
    head = (_read(git / "HEAD") or "").strip()
    if not head.startswith("ref:"):
        return head or None
    reference = head.partition(":")[2].strip()
    common = git / (_read(git / "commondir") or ".").strip()
    loose = _read(git / reference) or _read(common / reference)
    if loose:
        return loose.strip()
    for line in (_read(common / "packed-refs") or "").splitlines():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
