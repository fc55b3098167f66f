"""The set-up script on machines that lack something: stand-ins for the system's tools come first in PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_ROOT = {"id": "echo 1000", "sudo": "exit 1"}
SUDO_FOR_APT = {"id": "echo 1000", "sudo": 'shift; case "$*" in true | *apt-get*) exec "$@" ;; *) exit 1 ;; esac'}
ALL_BUT_NFTABLES = 'case "$*" in *nftables*) exit 1 ;; *) printf installed ;; esac'
ALL_BUT_MININET = 'case "$*" in *mininet*) exit 1 ;; *) printf installed ;; esac'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tools", "constraints"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def set_up(checkout: Path, **tools: str) -> subprocess.CompletedProcess[str]:
    """Run the script where ``tools`` (name -> shell commands) replace those of the system."""
    stand_ins = checkout / "stand-ins"
    stand_ins.mkdir()
    for name, commands in {"python": "exit 1", "apt-get": "exit 99", **tools}.items():
        (stand_ins / name).write_text(f"#!/bin/sh\n{commands}\n")
        (stand_ins / name).chmod(0o755)
    path = f"{stand_ins}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [checkout / "tools" / "setup.sh"],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def be_set_up(checkout: Path) -> None:
    """Leave what a set-up that came to its end leaves."""
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to("/bin/true")
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout
    digest = subprocess.run(
        "cat setup.cfg pyproject.toml constraints/build.txt tools/setup.sh | sha256sum",
        shell=True,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (checkout / ".venv" / "testbed-setup").write_text(f"{checkout}\n{version}{digest}")


def test_without_root_a_missing_package_is_named_with_what_to_do(checkout: Path) -> None:
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_MININET})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "setup: not installed: mininet; installing needs root, run: sudo make setup\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("E: Unable to locate package mininet", "E: Unable to locate package mininet"),
        ("Err: Temporary failure resolving", "where packages come from cannot be reached (no network?)"),
    ],
)
def test_what_cannot_be_installed_is_one_line_with_the_cause(checkout: Path, said: str, reason: str) -> None:
    done = set_up(checkout, **SUDO_FOR_APT, **{"dpkg-query": ALL_BUT_MININET, "apt-get": f"echo '{said}'; exit 100"})
    assert done.returncode == 1
    assert done.stdout == "setup: installing Debian packages: mininet\nsetup: updating the package lists\n"
    assert done.stderr.splitlines()[-1] == (f"setup: cannot install mininet: {reason} (all of it: .testbed-setup.log)")


def test_the_second_time_nothing_is_said_or_done(checkout: Path) -> None:
    be_set_up(checkout)
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": "printf installed"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (checkout / ".testbed-setup.log").exists()


def test_a_package_that_came_to_be_needed_is_noticed_on_a_machine_set_up_before(checkout: Path) -> None:
    be_set_up(checkout)
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_NFTABLES})
    needs = "nftables python3-nftables"
    assert done.stderr == f"setup: not installed: {needs}; installing needs root, run: sudo make setup\n"


def test_a_changed_dependency_is_noticed(checkout: Path) -> None:
    be_set_up(checkout)
    with (checkout / "setup.cfg").open("a") as metadata:
        metadata.write("# one more\n")
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_MININET})
    assert "setup: not installed: mininet" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_sudo_makes_in_a_users_checkout_belongs_to_the_user(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "31415")
    monkeypatch.setenv("SUDO_GID", "31416")
    (checkout / ".venv").write_text("in the way of an environment")
    os.chown(checkout, 31415, 31416)
    done = set_up(checkout, **{"dpkg-query": "printf installed"})
    assert done.stderr.startswith("setup: cannot make .venv: ")
    for name in (".venv", ".testbed-setup.log"):
        assert ((checkout / name).stat().st_uid, (checkout / name).stat().st_gid) == (31415, 31416)
