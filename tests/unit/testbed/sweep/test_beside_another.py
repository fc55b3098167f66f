"""Two sweeps, or a sweep and a run, that meet in one place: neither takes anything from the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import CannotRunError
from testbed.results.run_directory import RunDirectory
from testbed.sweep import store as stores
from testbed.sweep.running import work_off
from testbed.sweep.store import Store
from testbed.sweep.values import SweepPoint

ROOT = Path(__file__).parents[4]
HOLD = """
import sys, time
from pathlib import Path
from testbed.results.run_directory import RunDirectory
made = RunDirectory.create(Path(sys.argv[1]), "hello")
print(made.path, flush=True)
time.sleep(600)
"""
ONE = SweepPoint("s.yaml", "flow", (), (), 1)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LOCK_WAIT_S", 0.0)


def test_a_second_sweep_is_refused_while_the_first_is_at_work(tmp_path: Path, at_once: None) -> None:
    with Store(tmp_path).alone(), pytest.raises(CannotRunError, match="another sweep is at work there"):
        Store(tmp_path).alone().__enter__()
    with Store(tmp_path).alone():
        pass


def test_the_command_of_a_second_sweep_ends_with_status_3_and_touches_nothing(
    sweep: Callable[..., tuple[int, Any, str, str]], tmp_path: Path, at_once: None
) -> None:
    out = tmp_path / "out"
    running = RunDirectory.create(Store(out).folder(ONE), "hello")
    with Store(out).alone():
        status, runner, said, error = sweep("--out", str(out))
    assert (status, runner.asked, said) == (3, [], "")
    assert error.splitlines()[-1] == f"{out}: another sweep is at work there: wait for it, or choose another --out"
    assert running.path.exists()


def test_a_run_that_a_live_process_writes_is_left_alone_and_removed_once_that_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.folder(ONE))], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        with owner.stdout as said:
            running = Path(said.readline().strip())
        store.prepare(ONE)
        assert (running / "UNFINISHED").exists()
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    store.prepare(ONE)
    assert not running.exists()


def test_what_is_unfinished_stays_until_the_turn_of_its_point_has_come(tmp_path: Path, fake_runner: Any) -> None:
    points = [SweepPoint("s.yaml", "flow", (), (), seed) for seed in (1, 2)]
    store = Store(tmp_path)
    left = store.folder(points[1]) / "hello-1"
    left.mkdir(parents=True)
    (left / "UNFINISHED").touch()
    seen = []

    class InTurn:
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def __call__(self, work: Any) -> Any:
            for point, folder in work:
                seen.append(left.exists())
                yield point, fake_runner()(point, folder)

    class Quiet(InTurn):
        def phase(self, *_: object) -> None:
            pass

        advance_to = phase

    work_off(points, store, InTurn(), Quiet(), {})  # type: ignore[arg-type]
    assert seen == [True, False]


def test_a_run_whose_directory_was_removed_does_not_finish(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "hello")
    (directory.path / "UNFINISHED").unlink()
    directory.path.rmdir()
    for write in (lambda: directory.write_summary({}), directory.finish):
        with pytest.raises(Exception, match="this directory was removed meanwhile") as raised:
            write()
        assert len(str(raised.value).splitlines()) == 1
    assert not directory.path.exists()
