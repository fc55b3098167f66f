"""Points made by real processes, and what happens when one of these dies or is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from testbed.sweep.processes import Processes
from testbed.sweep.values import PointOutcome, Result, SweepPoint


def point(seed: int) -> SweepPoint:
    return SweepPoint("hello", "flow", (), (), seed)


def made(
    runner: Callable[[SweepPoint, Path], PointOutcome], count: int, points: int, folder: Path
) -> dict[int, PointOutcome]:
    """Seed -> what came of it, with real processes."""
    work = [(point(seed=seed), folder) for seed in range(points)]
    with Processes(runner, count) as execute:
        return {ended[0].seed: ended[1] for ended in execute(work) if ended is not None}


def told(point: SweepPoint, folder: Path) -> PointOutcome:
    """Tells which process made it; number 2 kills its process, number 3 has a fault."""
    if point.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return PointOutcome((Result(str(os.getpid()), "ok", 1 / (point.seed - 3), None, None, 0.0, 0.0),))


def test_points_are_made_by_processes_and_one_that_dies_takes_only_its_point(tmp_path: Path) -> None:
    outcomes = made(told, 2, 8, tmp_path)
    assert len(outcomes) == 8
    assert outcomes.pop(2) == PointOutcome(problem="its process ended by a signal (Killed)", status=1)
    assert outcomes.pop(3).problem.startswith("ZeroDivisionError: ")
    makers = {outcome.results[0].scheduler for outcome in outcomes.values()}
    assert 1 <= len(makers) <= 3 and str(os.getpid()) not in makers


def test_one_process_makes_one_point_at_a_time_in_order(tmp_path: Path) -> None:
    def note(point: SweepPoint, folder: Path) -> PointOutcome:
        with (folder / "log").open("a") as file:
            file.write(f"{point.seed} ")
        return PointOutcome()

    made(note, 1, 5, tmp_path)
    assert (tmp_path / "log").read_text() == "0 1 2 3 4 "


def test_leaving_early_ends_the_processes(tmp_path: Path) -> None:
    def wait_for_ever(point: SweepPoint, folder: Path) -> PointOutcome:
        (folder / f"{point.seed}").write_text(str(os.getpid()))
        signal.pause()
        return PointOutcome()

    with Processes(wait_for_ever, 2) as execute:
        ticks = execute([(point(seed=seed), tmp_path) for seed in range(3)])
        assert next(ticks) is None
        started = sorted(tmp_path.iterdir())
    assert [path.name for path in started] == ["0", "1"]
    assert not any(Path("/proc", path.read_text()).exists() for path in started)
