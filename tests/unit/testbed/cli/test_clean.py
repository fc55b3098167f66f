from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cli import clean
from testbed.machine import ownership
from testbed.machine.ownership import MARK, own_mark, run_is_gone, strays

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]


def marked(run: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(SLEEP, env={**os.environ, MARK: run}, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()  # until then its environment may still be that of this process
    return child


@pytest.fixture
def gone() -> str:
    """The mark of a run that has ended."""
    return subprocess.run(
        [sys.executable, "-c", "from testbed.machine.ownership import own_mark; print(own_mark())"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    ).stdout.strip()


@pytest.fixture
def stray(gone: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that outlived its run."""
    with marked(gone) as child:
        yield child
        child.kill()


def do(tmp_path: Path, dry_run: bool = False) -> int:
    return clean.run(argparse.Namespace(dry_run=dry_run, out=tmp_path))


def test_a_process_that_outlived_its_run_is_ended(
    stray: subprocess.Popen[bytes], gone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(tmp_path) == 0
    assert stray.wait(timeout=10) == -9
    assert f"ended process {stray.pid} (" in capsys.readouterr().out


def test_a_dry_run_only_says_what_it_would_end(
    stray: subprocess.Popen[bytes], gone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    do(tmp_path, dry_run=True)
    assert f"would end process {stray.pid} (" in capsys.readouterr().out
    assert stray.poll() is None


def test_a_process_of_a_run_that_goes_on_is_left_alone() -> None:
    with marked(own_mark()) as child:
        assert child.pid not in [found.pid for found in strays()]
        child.kill()


@pytest.mark.parametrize("run", ["", "nightly", "12", "0-0", "-5", "1-2", "1-2-3-4"])
def test_a_mark_that_says_nothing_about_a_run_is_nobodys_to_clean(run: str) -> None:
    assert not run_is_gone(run)


def test_a_process_number_given_out_again_does_not_bring_a_run_back() -> None:
    number, start, namespace = own_mark().split("-")
    assert not run_is_gone(f"{number}-{start}-{namespace}")
    assert run_is_gone(f"{number}-{int(start) - 1}-{namespace}")


def test_a_run_in_a_container_is_nobodys_to_clean_outside_of_it() -> None:
    """Its numbers mean other processes there, or none."""
    number, start, namespace = own_mark().split("-")
    assert not run_is_gone(f"{number}-{int(start) - 1}-{int(namespace) + 1}")


def test_the_one_who_cleans_and_its_ancestors_are_never_ended(gone: str) -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; from testbed.machine.ownership import strays; print(os.getpid() in [s.pid for s in strays()])",
        ],
        env={**os.environ, MARK: gone},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    assert found.stdout == "False\n"


def test_a_process_that_is_another_one_by_now_is_not_ended(stray: subprocess.Popen[bytes]) -> None:
    assert not ownership.end(ownership.Stray(stray.pid, "python", "1-1"))
    assert stray.poll() is None


def test_unfinished_runs_are_named_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = tmp_path / "clos96-20260101-000000" / "UNFINISHED"
    marker.parent.mkdir()
    marker.touch()
    do(tmp_path)
    assert f"unfinished, or still running: {marker.parent} (kept" in capsys.readouterr().out
    assert marker.exists()
