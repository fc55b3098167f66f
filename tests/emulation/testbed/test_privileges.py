"""What ``sudo testbed run`` does as whom: read from its running processes, and from what it leaves behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from emulation_runs import LOCK_WAIT_S, ROOT

from testbed.engines.emulation.namespaces.sandbox import LOCK
from testbed.machine.file_lock import is_held

pytestmark = [pytest.mark.emulation, pytest.mark.shares_machine, pytest.mark.xdist_group("privileges")]

USER = 31_415
"""A user id that nobody has: enough for the kernel, and for files."""
SYS_ADMIN = 1 << 21
PLANTED = ("resource", "heapq", "ctypes", "signal", "json", "asyncio", "socket", "select", "traceback")
MARKER = "import os; open({path!r}, 'a').write(f'{{os.geteuid()}} {name}\\n'); raise ImportError('planted {name}')"
KINDS = {
    "-m workloads.worker": "worker",
    "-m workloads.opener": "opener",
    "-m controller": "controller",
    "foreign_plugins.plugin_main": "plug-in",
    "-m testbed.watch.server": "page server",
    "-m testbed run": "command",
}


@dataclass(frozen=True)
class Seen:
    """A process of a run: its user, its effective and possible capabilities, whether it can gain more."""

    user: int
    effective: int
    possible: int
    no_new_privileges: bool
    served_first: bool


def seen(pid: int) -> Seen:
    fields = dict(
        line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    return Seen(
        int(fields["Uid"].split()[1]),
        int(fields["CapEff"], 16),
        int(fields["CapBnd"], 16),
        fields["NoNewPrivs"].strip() == "1",
        os.getpriority(os.PRIO_PROCESS, pid) == -20,
    )


def processes_of(run: int) -> dict[str, list[Seen]]:
    """Kind -> the processes of the run that is process ``run``."""
    found: dict[str, list[Seen]] = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            own = int(entry.name) == run or f"TESTBED_RUN={run}-".encode() in (entry / "environ").read_bytes()
            kind = next((kind for text, kind in KINDS.items() if text in words), None)
            if own and kind is not None and "setpriv" not in words.split()[0]:
                found.setdefault(kind, []).append(seen(int(entry.name)))
        except (OSError, ValueError):
            continue
    return found


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A directory of that user, with modules in it that other people left there."""
    with tempfile.TemporaryDirectory(prefix="testbed-user-") as name:
        folder = Path(name)
        for module in PLANTED:
            (folder / f"{module}.py").write_text(MARKER.format(path=str(folder / "planted"), name=module))
        (folder / "planted").touch()
        (folder / "planted").chmod(0o666)
        _install_scheduler(folder / "packages")
        shutil.chown(folder, USER, USER)
        yield folder


def _install_scheduler(packages: Path) -> None:
    """Another package's scheduler, which decides again at every communication step."""
    metadata = packages / "foreign-1.0.dist-info"
    metadata.mkdir(parents=True)
    code = (
        "from controller.schedulers.sincronia import Sincronia\n\n\nclass Foreign(Sincronia):\n    name = 'foreign'\n"
    )
    (packages / "foreign.py").write_text(code)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[testbed.schedulers]\nforeign = foreign:Foreign\n")


@dataclass
class SudoRun:
    """A run that has ended: its status, what it said, and its processes as they were while it measured."""

    run: int
    status: int
    error: str
    processes: dict[str, list[Seen]]
    home: Path

    @property
    def directory(self) -> Path:
        return max(path for path in (self.home / "runs").iterdir() if path.is_dir())


def wait_for_the_machine() -> None:
    """Wait until no other run has it."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while is_held(LOCK) and time.monotonic() < deadline:
        time.sleep(0.2)


@pytest.fixture(scope="module")
def sudo_run(home: Path) -> SudoRun:
    """``sudo testbed run hello.yaml`` of that user in that directory, as sudo starts it."""
    sudo = {"SUDO_UID": str(USER), "SUDO_GID": str(USER), "SUDO_USER": "somebody"}
    wait_for_the_machine()
    run = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "testbed",
            "run",
            "hello.yaml",
            "--scheduler",
            "foreign",
            "--allow-degraded",
            "--watch",
            "--set",
            "checks=[]",
        ],
        cwd=home,
        env={**os.environ, **sudo, "PYTHONPATH": f"{ROOT}:{home}/packages", "HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        umask=0o027,
    )
    processes: dict[str, list[Seen]] = {}
    try:
        while run.poll() is None:
            now = processes_of(run.pid)
            if len(now) == len(KINDS) and all(worker.served_first for worker in now["worker"]):
                processes = now
            time.sleep(0.1)
        error = run.communicate()[1]
    finally:
        run.kill()
        run.wait()
    return SudoRun(run.pid, run.returncode, error, processes, home)


def test_it_runs_to_its_end(sudo_run: SudoRun) -> None:
    assert sudo_run.status == 0, sudo_run.error
    assert not (sudo_run.directory / "UNFINISHED").exists()


@pytest.mark.parametrize("kind", ["command", "controller", "page server", "plug-in", "worker"])
def test_what_needs_no_root_has_no_right_of_it(sudo_run: SudoRun, kind: str) -> None:
    """The command itself writes the report; schedulers of other packages are called in three of these."""
    for process in sudo_run.processes[kind]:
        assert (process.user, process.effective, process.no_new_privileges) == (USER, 0, True)
        assert process.possible == 0


def test_workers_are_still_served_before_other_processes(sudo_run: SudoRun) -> None:
    assert len(sudo_run.processes["worker"]) == 2
    assert all(worker.served_first for worker in sudo_run.processes["worker"])


def test_the_process_that_opens_sockets_can_enter_namespaces_and_nothing_else(sudo_run: SudoRun) -> None:
    (opener,) = sudo_run.processes["opener"]
    assert (opener.effective, opener.possible, opener.no_new_privileges) == (SYS_ADMIN, SYS_ADMIN, True)


def test_no_process_imports_from_the_current_directory(sudo_run: SudoRun) -> None:
    assert (sudo_run.home / "planted").read_text() == ""


def test_the_run_directory_belongs_to_the_user_and_honours_the_umask(sudo_run: SudoRun) -> None:
    assert sudo_run.status == 0, sudo_run.error
    paths = [sudo_run.directory.parent, sudo_run.directory, *sudo_run.directory.rglob("*")]
    assert [str(path) for path in paths if (path.stat().st_uid, path.stat().st_gid) != (USER, USER)] == []
    assert [str(path) for path in paths if path.stat().st_mode & 0o027] == []


@pytest.mark.parametrize(
    "verb",
    [["report", "RUN"], ["compare", "RUN", "RUN"], ["run", "hello.yaml", "--engine", "flow"]],
    ids=lambda v: v[0],
)
def test_the_user_goes_on_without_sudo(sudo_run: SudoRun, verb: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "testbed", *(word.replace("RUN", str(sudo_run.directory)) for word in verb)],
        cwd=sudo_run.home,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(sudo_run.home)},
        user=USER,
        group=USER,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_is_left(sudo_run: SudoRun) -> None:
    assert left_of(sudo_run.run) == []


@pytest.mark.parametrize("moment_s", [0.5, 1.5, 2.5, 4.0, 6.0])
def test_a_kill_leaves_nothing(home: Path, moment_s: float) -> None:
    """The command is not root, so the kernel does not end the launcher with it: that sees its socket closed."""
    wait_for_the_machine()
    run = subprocess.Popen(
        [sys.executable, "-P", "-m", "testbed", "run", "hello.yaml", "--out", "killed"],
        cwd=home,
        env={**os.environ, "SUDO_UID": str(USER), "SUDO_GID": str(USER), "PYTHONPATH": str(ROOT), "HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(moment_s)
    run.kill()
    run.wait()
    assert left_of(run.pid) == []


def left_of(run: int, seconds: float = 10.0) -> list[str]:
    """What is left of the run that was process ``run`` after ``seconds``, its launcher included."""
    deadline = time.monotonic() + seconds
    while (left := processes_left(run)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def processes_left(run: int) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
            if b"privileged.launcher" in words or f"TESTBED_RUN={run}-".encode() in (entry / "environ").read_bytes():
                found.append(words.replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def test_a_user_who_cannot_write_there_is_told_in_one_line(home: Path) -> None:
    sudo = {"SUDO_UID": str(USER), "SUDO_GID": str(USER), "SUDO_USER": "somebody"}
    with tempfile.TemporaryDirectory(prefix="testbed-roots-") as roots:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "testbed", "run", "hello.yaml", "--engine", "flow", "--out", f"{roots}/runs"],
            cwd=home,
            env={**os.environ, **sudo, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot make a run directory: Permission denied" in done.stderr
