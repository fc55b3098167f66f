"""The package as ``pip install .`` leaves it: the command works from anywhere, with everything it reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
NOT_SOURCES = shutil.ignore_patterns(".*", "runs", "build", "*.egg-info", "__pycache__")


NEEDED_TO_EMULATE = ("mininet", "ovs", "ryu", "os_ken", "eventlet", "scapy")


def installed(place: Path, packages: Iterable[Path]) -> Path:
    """Install the package into an environment in ``place`` that sees ``packages`` but not the checkout; its command."""
    pytest.importorskip("setuptools")
    # Built from a copy: a build leaves files behind, and the checkout is read by others meanwhile.
    source = shutil.copytree(ROOT, place / "source", ignore=NOT_SOURCES)
    venv.create(place / "venv", symlinks=True)
    library = next((place / "venv" / "lib").glob("python3*/site-packages"))
    # Python reads .pth files only in directories that it knows to hold packages, so an editable install stays unseen.
    (library / "dependencies.pth").write_text("\n".join(map(str, packages)) + "\n", "utf-8")
    done = subprocess.run(
        [*PIP, "--no-build-isolation", "--prefix", str(place / "venv"), "--ignore-installed", str(source)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    script = place / "venv" / "bin" / "testbed"
    lines = script.read_text("utf-8").splitlines()
    # pip writes its own interpreter; the command has to run in the new environment.
    script.write_text("\n".join([f"#!{place / 'venv' / 'bin' / 'python'}", *lines[1:]]) + "\n", "utf-8")
    return script


def package_folders() -> list[Path]:
    return [Path(found) for found in sys.path if Path(found).name in ("site-packages", "dist-packages")]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command, in an environment with everything that the checkout's has."""
    return installed(tmp_path_factory.mktemp("installed"), package_folders())


@pytest.fixture(scope="module")
def command_without_mininet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command, in an environment that lacks whatever only an emulation needs."""
    place = tmp_path_factory.mktemp("bare")
    (place / "packages").mkdir()
    for entry in (entry for folder in package_folders() for entry in folder.iterdir()):
        link = place / "packages" / entry.name
        if not entry.name.startswith(NEEDED_TO_EMULATE) and not link.exists():
            link.symlink_to(entry)
    return installed(place, [place / "packages"])


def call(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([str(command), *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


def test_the_command_validates_a_bundled_scenario_from_any_directory(command: Path, tmp_path: Path) -> None:
    done = call(command, "validate", "hello.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "hello: right (2 jobs on 8 of 8 GPUs, schedulers ecmp, crux)\n"


def test_the_command_plans_with_the_installed_schedulers(command: Path, tmp_path: Path) -> None:
    done = call(command, "plan", "clos96.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [entry["scheduler"] for entry in json.loads(done.stdout)["schedulers"]] == ["ecmp", "crux"]


def test_the_command_knows_its_version(command: Path, tmp_path: Path) -> None:
    version = next(line for line in (ROOT / "setup.cfg").read_text("utf-8").splitlines() if line.startswith("version"))
    assert call(command, "--version", cwd=tmp_path).stdout == f"testbed {version.partition('=')[2].strip()}\n"


def test_the_modules_and_the_data_are_those_that_were_installed(command: Path) -> None:
    library = next(command.parents[1].glob("lib/python3*/site-packages"))
    for room in ("topologies", "workloads", "controller", "testbed"):
        here = {path.relative_to(ROOT) for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".yaml", ".j2")}
        there = {path.relative_to(library) for path in (library / room).rglob("*")}
        assert here - there == set()


def test_without_mininet_the_flow_engine_runs_and_an_emulation_says_what_is_missing(
    command_without_mininet: Path, tmp_path: Path
) -> None:
    done = call(command_without_mininet, "run", "hello", "--engine", "flow", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "crux" in done.stdout
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").exists()
    refused = call(command_without_mininet, "run", "hello", cwd=tmp_path)
    assert refused.returncode == 3
    assert "Traceback" not in refused.stderr and len(refused.stderr.splitlines()) == 1
