"""Who runs what: the user behind sudo, and commands that start without any privilege."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.machine import privileges
from testbed.machine.child_python import PACKAGES, module_path, python_module
from testbed.machine.privileges import User, may_read, plain_user, sudo_user, unprivileged

NOBODY = User(65534, 65534)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
STATUS = ["grep", "-E", "^(Uid|Gid|Groups|CapPrm|CapEff|CapBnd|NoNewPrivs)", "/proc/self/status"]


def status_of(command: list[str]) -> dict[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: value.strip() for name, _, value in (line.partition(":") for line in done.stdout.splitlines())}


@as_root
@pytest.mark.parametrize("user", [NOBODY, User(31415, 31416, (31416, 27)), None], ids=["nobody", "a user", "root"])
def test_a_command_without_privileges_has_none_and_gains_none(user: User | None) -> None:
    found = status_of(unprivileged(STATUS, user))
    wanted = User(0, 0) if user is None else user
    assert (found["Uid"].split()[1], found["Gid"].split()[1]) == (str(wanted.uid), str(wanted.gid))
    assert user is None or sorted(found["Groups"].split()) == sorted(map(str, user.groups))
    assert {found[name] for name in ("CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert found["NoNewPrivs"] == "1"


@as_root
def test_what_is_to_be_kept_is_all_that_is_kept() -> None:
    found = status_of(unprivileged(STATUS, None, keep=["sys_admin"]))
    assert {int(found[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {1 << 21}


@as_root
@pytest.mark.parametrize(
    ("environment", "uid"),
    [
        ({}, None),
        ({"SUDO_UID": "31415", "SUDO_GID": "31416"}, 31415),
        ({"SUDO_UID": "0", "SUDO_GID": "0"}, None),
        ({"SUDO_UID": "31415"}, None),
        ({"SUDO_UID": "-1", "SUDO_GID": "x"}, None),
        ({"SUDO_UID": "9" * 30, "SUDO_GID": "1"}, 10**30 - 1),
    ],
)
def test_the_user_behind_sudo_is_the_one_that_it_names(environment: dict[str, str], uid: int | None) -> None:
    found = sudo_user(environment)
    assert (None if found is None else found.uid) == uid


def test_without_root_there_is_nothing_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges.os, "geteuid", lambda: 1000)
    assert sudo_user({"SUDO_UID": "31415", "SUDO_GID": "31416"}) is None


@as_root
def test_what_a_user_may_read_is_tried_as_that_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "file").touch()
    assert not may_read(NOBODY, [tmp_path / "file"])
    assert may_read(NOBODY, ["/", "/nonexistent"])
    assert os.geteuid() == 0


@as_root
def test_code_that_only_root_may_read_is_run_by_root_without_capabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "packages").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    assert plain_user() is None


def test_children_do_not_look_for_modules_in_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "heapq.py").write_text("raise SystemExit('planted')\n")
    (tmp_path / "workloads").mkdir()
    code = subprocess.run(
        python_module("workloads.worker", str(tmp_path), "h0", site=False),
        cwd=tmp_path,
        env={"PYTHONPATH": module_path(f":{tmp_path / 'own'}:")},
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (code.returncode, code.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "found"),
    [("", []), (":", []), ("/a::/b:", ["/a", "/b"]), ("sub:.", ["{here}/sub", "{here}"]), (str(PACKAGES), [])],
)
def test_an_empty_entry_of_the_path_is_not_the_current_directory(given: str, found: list[str]) -> None:
    here = os.getcwd()
    expected = [str(PACKAGES), *(entry.format(here=here) for entry in found)]
    assert module_path(given).split(os.pathsep) == list(dict.fromkeys(expected))


def test_every_child_that_runs_a_module_is_started_by_the_one_function() -> None:
    rooms = ("topologies", "workloads", "controller", "testbed")
    sources = [path for room in rooms for path in (PACKAGES / room).rglob("*.py")]
    starters = [
        str(path.relative_to(PACKAGES))
        for path in sources
        if '"-m",' in path.read_text("utf-8") or '"-m"' in path.read_text("utf-8")
    ]
    # ``testbed.client.mpirun`` is a user's own program in a host, and as unprivileged as what it starts.
    assert sorted(starters) == [
        "testbed/__main__.py",
        "testbed/client/mpirun.py",
        "testbed/machine/child_python.py",
        "testbed/sweep/command.py",
    ]
    assert sys.executable in python_module("x")
