"""The errors a user meets: one clear line on standard error, the right status, never a traceback."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.shares_machine

ROOT = Path(__file__).parents[3]
NOBODY = "65534"
INSTEAD = "'testbed run hello.yaml --engine flow' works here (it sends no packets); with packets: "
TIMEOUT_S = 180.0
WAIT_S = 60.0
BUSY = "another emulation is running on this machine: wait for it, or stop it\n"

RAISING = """
class Raises:
    name = "raises"
    summary = "raises at every event"

    def decide(self, view, event):
        if event.job == "small":
            raise ZeroDivisionError("no intensity\\nfor " + event.job)
        from controller.decision import Decision
        return Decision()
"""
RAISED = "raising.py:8: scheduler raises raised ZeroDivisionError: no intensity for small"


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "TESTBED_DEBUG": "0", **changes}


def call(
    *arguments: str,
    prefix: Sequence[str] = (),
    env: dict[str, str] | None = None,
    python: Sequence[str] = ("-m", "testbed"),
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, *python, *arguments],
        cwd=ROOT,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def unless_busy(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the testbed, waiting for an emulation that somebody else has going on this machine."""
    deadline = time.monotonic() + WAIT_S
    while True:
        done = call(*arguments, env=env)
        if not (done.returncode == 3 and BUSY in done.stderr):
            return done
        if time.monotonic() > deadline:
            pytest.skip("somebody else's emulation is running on this machine")
        time.sleep(2.0)


def errors_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What was said on standard error, without the progress of a run."""
    return [line for line in done.stderr.splitlines() if not re.search(r"( \.\.\.|: done in .*|elapsed.*)$", line)]


def assert_one_line(done: subprocess.CompletedProcess[str], status: int, line: str) -> None:
    assert (done.returncode, errors_of(done), done.stdout) == (status, [line], "")


SCENARIO = """\
fabric: {kind: clos, hosts: 2, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - name: big
    model: bert
    gpus: 8
schedulers: [ecmp, crux]
"""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("[ecmp, crux]", "[ecmp, crux"), "8: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        (("model: bert", "model: bertt"), "5: unknown model 'bertt', did you mean 'bert'?"),
        (("[ecmp, crux]", "[ecmp, cruks]"), "7: unknown scheduler 'cruks', did you mean 'crux'?"),
        (("gpus: 8", "gpus: 8\n    colour: red"), "7: unknown key 'colour' in jobs.0, expected "),
        (("gpus: 8", "gpus: 9"), "6: the jobs ask for 9 GPUs on 8, expected at most 8 together"),
    ],
    ids=["YAML", "model", "scheduler", "key", "GPUs"],
)
@pytest.mark.parametrize("verb", ["run", "plan", "validate"])
def test_a_wrong_scenario_is_refused_with_its_line(
    verb: str, change: tuple[str, str], line: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.yaml"
    assert SCENARIO.count(change[0]) == 1
    path.write_text(SCENARIO.replace(*change), "utf-8")
    done = call(verb, str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"{path}:{line}")


def test_97_gpus_on_96_are_one_line() -> None:
    done = call("run", "clos96.yaml", "--set", "jobs=[{name: all, model: bert, gpus: 97}]", "--set", "checks=[]")
    assert done.returncode == 2
    (line,) = errors_of(done)
    assert "97 GPUs on 96" in line


def test_an_engine_that_there_is_not_is_one_line(tmp_path: Path) -> None:
    done = call("run", "hello.yaml", "--engine", "packets", "--out", str(tmp_path))
    expected = "invalid choice: 'packets', expected one of emulation, simulation, flow (see testbed run --help)"
    assert_one_line(done, 2, f"testbed run: argument --engine: {expected}")
    assert list(tmp_path.iterdir()) == []


def test_the_flow_engine_runs_where_an_emulation_could_not(tmp_path: Path) -> None:
    done = call("run", "hello.yaml", "--engine", "flow", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (directory,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (directory / "summary.json").exists() and not (directory / "UNFINISHED").exists()


@pytest.mark.emulation
def test_an_ordinary_user_is_told_to_use_sudo() -> None:
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run(
        [*drop, sys.executable, "-c", "import sys; open(sys.argv[1])", str(ROOT / "setup.cfg")], capture_output=True
    ).returncode:
        drop = ["unshare", "--user"]  # a checkout that only root may read: nobody by name, root by file access
    done = call("run", "hello.yaml", prefix=drop)
    assert_one_line(done, 3, f"{INSTEAD}emulation needs root: run with sudo")


@pytest.mark.parametrize("missing", ["setpriv", "ovs-vsctl", "ovs-vswitchd", "tc", "mnexec"])
@pytest.mark.emulation
def test_a_program_that_is_missing_is_named_with_the_way_to_get_it(missing: str, tmp_path: Path) -> None:
    with _hidden(missing, tmp_path) as prefix:
        done = call("run", "hello.yaml", "--out", str(tmp_path / "runs"), prefix=prefix)
    (line,) = errors_of(done)
    assert done.returncode == 3
    assert line.startswith(
        f"{INSTEAD}emulation needs {missing}, which is not here: run 'make setup', or: apt-get install "
    )
    assert not (tmp_path / "runs").exists()


@contextmanager
def _hidden(program: str, directory: Path) -> Iterator[list[str]]:
    """A command prefix under which ``program`` cannot be executed: a mount namespace covers it with an empty file."""
    path = shutil.which(program, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if path is None:
        yield []
        return
    cover = directory / program
    cover.touch(mode=0o644)
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    yield ["unshare", "--mount", "sh", "-c", script, "sh", str(cover), os.path.realpath(path)]


@pytest.mark.emulation
def test_a_python_without_mininet_is_told_so(tmp_path: Path) -> None:
    start = (
        "import importlib.util, sys; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'mininet' else real(name, package)\n"
        "from testbed.cli.main import main; sys.exit(main())"
    )
    done = call("run", "hello.yaml", "--out", str(tmp_path), python=("-c", start))
    (line,) = errors_of(done)
    assert (done.returncode, done.stdout) == (3, "")
    assert line.startswith(f"{INSTEAD}emulation needs Mininet, which this Python cannot import: ")


@pytest.mark.emulation
def test_a_place_that_cannot_be_written_to_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = unless_busy("run", "hello.yaml", "--out", str(tmp_path / "file"))
    line = f"{tmp_path}/file: cannot make a run directory: File exists, expected a directory to write to"
    assert_one_line(done, 2, line)


@pytest.fixture
def with_raising_scheduler(tmp_path: Path) -> dict[str, str]:
    """An environment in which a package announces a scheduler that raises when the second job arrives."""
    package = tmp_path / "package"
    metadata = package / "raising-1.0.dist-info"
    metadata.mkdir(parents=True)
    (package / "raising.py").write_text(RAISING, "utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: raising\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[testbed.schedulers]\nraises = raising:Raises\n", "utf-8")
    return environment(PYTHONPATH=str(package))


def test_a_scheduler_that_raises_ends_a_plan_with_one_line(
    with_raising_scheduler: dict[str, str], tmp_path: Path
) -> None:
    done = call("plan", "hello.yaml", "--scheduler", "raises", env=with_raising_scheduler)
    assert_one_line(done, 1, f"{tmp_path}/package/{RAISED}")


@pytest.mark.emulation
@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")
def test_a_scheduler_that_raises_ends_a_run_with_one_line_and_its_traceback_in_the_log(
    with_raising_scheduler: dict[str, str], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    done = unless_busy("run", "hello.yaml", "--scheduler", "raises", "--out", str(runs), env=with_raising_scheduler)
    assert_one_line(done, 1, f"{tmp_path}/package/{RAISED}")
    (directory,) = (path for path in runs.iterdir() if path.is_dir())
    log = (directory / "raises" / "testbed.log").read_text("utf-8")
    assert "Traceback" in log and "ZeroDivisionError" in log and "raising.py" in log
    assert (directory / "UNFINISHED").exists()


@pytest.mark.emulation
@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")
def test_a_second_run_beside_the_first_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "testbed",
            "run",
            "hello.yaml",
            "--allow-degraded",
            "--set",
            "checks=[]",
            "--out",
            str(tmp_path / "first"),
        ],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert first.stderr is not None
    with first.stderr as said:
        seen = said.readline()
        if BUSY in seen:
            first.wait()
            pytest.skip("somebody else's emulation is running on this machine")
        second = call("run", "hello.yaml", "--out", str(tmp_path / "second"))
        rest = said.read()
    assert_one_line(second, 3, BUSY.rstrip())
    assert not (tmp_path / "second").exists()
    assert first.wait() == 0, rest
