"""The wheel, installed without extras into an empty environment: no Mininet, no Open vSwitch, no compiler, no plots."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
NOT_SOURCES = shutil.ignore_patterns(".*", "runs", "build", "dist", "*.egg-info", "__pycache__")
ROOMS = ("topologies", "workloads", "controller", "testbed")
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
MOST_BYTES = 150_000_000
"""Of everything that the bare install puts on the disk, Python itself and pip apart."""


def pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PIP, *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    pytest.importorskip("setuptools")
    place = tmp_path_factory.mktemp("wheel")
    # Built from a copy: a build leaves files behind, and the checkout is read by others meanwhile.
    source = shutil.copytree(ROOT, place / "source", ignore=NOT_SOURCES)
    done = pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", place, source)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command ``testbed`` in an environment into which nothing but the wheel was installed."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    install = ["--python", python, "install", "--retries", "1", "--constraint", ROOT / "constraints" / "ci.txt"]
    done = pip(*install, wheel)
    if done.returncode and not package_index_answers(place.parent):
        done = pip(*install, "--no-deps", "--no-index", wheel)
        link_what_is_required(site_packages(place))
    assert done.returncode == 0, done.stderr
    return place / "bin" / "testbed"


def package_index_answers(place: Path) -> bool:
    return pip("download", "--retries", "1", "--no-deps", "--dest", place / "trial", "pyyaml").returncode == 0


def link_what_is_required(library: Path) -> None:
    """Without a package index: link what the wheel requires, and what that requires, from this environment."""
    (metadata,) = library.glob("gpu_communication_testbed-*.dist-info")
    for found in required_by(PathDistribution(metadata), {}).values():
        for entry in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (library / entry).symlink_to(Path(str(found.locate_file(entry))))


def required_by(package: Distribution, known: dict[str, Distribution]) -> dict[str, Distribution]:
    for text in package.requires or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name.lower() not in known:
            known[requirement.name.lower()] = distribution(requirement.name)
            required_by(known[requirement.name.lower()], known)
    return known


def site_packages(place: Path) -> Path:
    return next((place / "lib").glob("python3*/site-packages"))


def files_under(folders: Iterable[Path]) -> list[Path]:
    names = (os.walk(folder, followlinks=True) for folder in folders)
    return [Path(folder, name) for walk in names for folder, _, files in walk for name in files]


def call(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(command), *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)


def test_the_flow_engine_runs_and_writes_its_report(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "run", "hello", "--engine", "flow", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "crux" in done.stdout and "Traceback" not in done.stderr
    (run,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert "crux" in (run / "report.html").read_text("utf-8")
    assert json.loads((run / "summary.json").read_text("utf-8"))["engine"] == "flow"


def test_reports_and_comparisons_need_no_extra(bare: Path, tmp_path: Path) -> None:
    assert call(bare, "run", "hello", "--engine", "flow", "--out", "runs", cwd=tmp_path).returncode == 0
    (run,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    for verb in ("report", "compare"):
        done = call(bare, verb, str(run), cwd=tmp_path)
        assert done.returncode == 0 and done.stdout and "Traceback" not in done.stderr


def test_it_takes_at_most_150_megabytes(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = sum(path.stat().st_size for path in files_under([site_packages(bare.parents[1])]))
    with capsys.disabled():
        print(f"\nbare install: {size / 1e6:.0f} MB")
    assert size <= MOST_BYTES


def test_an_emulation_says_what_is_missing_and_the_command_that_installs_it(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "run", "hello", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    install = "pip install 'gpu-communication-testbed[emulation]'"
    works = "'testbed run hello --engine flow' works here (it sends no packets); with packets: "
    assert done.stderr == f"{works}emulation needs eventlet, os-ken and scapy: {install}\n"
    assert not (tmp_path / "runs").exists()


def test_a_sweep_on_ray_says_what_is_missing_and_the_command_that_installs_it(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("scenario: hello\nengine: flow\n")
    done = call(bare, "sweep", "one.yaml", "--on", "ray", cwd=tmp_path)
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert last == "sweep --on ray needs ray: pip install 'gpu-communication-testbed[ray]'"


def test_the_doctor_names_every_extra_that_is_missing(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "doctor", "--json", "--no-rehearsal", cwd=tmp_path)
    assert done.returncode == 3
    rows = {row["name"]: row for row in json.loads(done.stdout)["findings"] if row["name"].startswith("extra ")}
    assert {"extra emulation", "extra fast", "extra plots", "extra ray"} <= set(rows)
    for name, row in rows.items():
        assert not row["present"]
        assert f"pip install 'gpu-communication-testbed[{name.removeprefix('extra ')}]'" in row["consequence"]


def test_the_command_validates_a_bundled_scenario_from_any_directory(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "validate", "hello.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "hello: valid (2 jobs on 8 of 8 GPUs, schedulers ecmp, crux)\n"


def test_the_command_plans_with_the_installed_schedulers(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "plan", "clos96.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [entry["scheduler"] for entry in json.loads(done.stdout)["schedulers"]] == ["ecmp", "crux"]


def test_the_command_knows_its_version(bare: Path, tmp_path: Path) -> None:
    version = next(line for line in (ROOT / "setup.cfg").read_text("utf-8").splitlines() if line.startswith("version"))
    assert call(bare, "--version", cwd=tmp_path).stdout == f"testbed {version.partition('=')[2].strip()}\n"


def test_the_modules_and_the_data_are_those_that_were_installed(bare: Path) -> None:
    library = site_packages(bare.parents[1])
    here = {path.relative_to(ROOT) for path in files_under(ROOT / room for room in ROOMS)}
    there = {path.relative_to(library) for path in files_under(library / room for room in ROOMS)}
    assert {path for path in here - there if path.suffix != ".md" and "__pycache__" not in path.parts} == set()
