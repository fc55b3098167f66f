"""Points as tasks of a local Ray cluster; skipped where Ray is not installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import CannotRunError
from testbed.sweep.running import attempt
from testbed.sweep.store import Store
from testbed.sweep.values import PointOutcome, Result, Runner, SweepPoint

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")


def runner() -> Runner:
    """Writes what it was given and who it is; seed 3 kills its process, seed 4 fails. A closure, sent as it is."""

    def run(point: SweepPoint, folder: Path) -> PointOutcome:
        if point.seed == 3:
            os._exit(1)
        if point.seed == 4:
            raise ZeroDivisionError("a bug")
        run_folder = folder / "run"
        (run_folder / "ecmp").mkdir(parents=True)
        (run_folder / "ecmp" / "rows.csv").write_text(Path(point.scenario).read_text()[:20])
        claimed = ray.get_runtime_context().get_assigned_resources()
        (run_folder / "claimed").write_text(str(sorted(claimed.items())))
        return PointOutcome((Result(Path(point.scenario).name, "ok", 0.5, None, None, 0.0, 0.0),), "run")

    return run


def made(engine: str, seeds: int, store: Store, address: str = "local") -> Iterator[tuple[int, PointOutcome]]:
    from testbed.machine.distribution import package_version
    from testbed.sweep.on_ray import RayTasks

    points = [SweepPoint("hello.yaml", engine, (), (), seed) for seed in range(seeds)]
    work = [(point, store.prepare(point)) for point in points]
    with RayTasks(runner(), address, package_version(), 2) as execute:
        yield from ((ended[0].seed, ended[1]) for ended in execute(work) if ended is not None)


def test_tasks_hand_back_the_files_of_their_runs_and_a_lost_one_is_its_points_failure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    outcomes = dict(made("flow", 6, store))
    assert sorted(outcomes) == [0, 1, 2, 3, 4, 5]
    assert outcomes[3].status == 1 and "Crashed" in outcomes[3].problem
    assert outcomes[4].problem.startswith("ZeroDivisionError: a bug") and (tmp_path / "seed=4" / "error.log").is_file()
    for seed in (0, 1, 2, 5):
        assert outcomes[seed].results[0].scheduler == "hello.yaml"
        folder = tmp_path / f"seed={seed}"
        assert (folder / "run" / "ecmp" / "rows.csv").read_text().startswith("# Two small jobs")
        assert (folder / "run" / "claimed").read_text() == "[('CPU', 1.0)]"
        assert [path.name for path in folder.iterdir()] == ["run"]


def test_an_emulation_claims_its_machine_and_all_its_cpus(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert [outcome.problem for _, outcome in made("emulation", 2, store)] == ["", ""]
    assert (tmp_path / "seed=1" / "run" / "claimed").read_text() == "[('CPU', 2.0), ('testbed-machine', 1.0)]"


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray._private.ray_constants.NUM_REDIS_GET_RETRIES", 1)  # Ray is imported here already
    with pytest.raises(CannotRunError, match=r"^no Ray cluster at '127\.0\.0\.1:1' \(.*\), expected its address$"):
        dict(made("flow", 1, Store(tmp_path), "127.0.0.1:1"))


def test_what_a_task_does_is_what_is_done_here(tmp_path: Path) -> None:
    outcome = attempt(runner(), SweepPoint("hello.yaml", "flow", (), (), 4), tmp_path)
    assert outcome.problem == f"ZeroDivisionError: a bug; details in {tmp_path / 'error.log'}"
