"""Managers beside the simulators of their authors: small traces of our own, and theirs where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.managers.oracles.known_results import PUBLISHED, KnownResult
from testbed.reproduce.managers.oracles.manager_oracles import compared, found_in, played, reproduce
from testbed.reproduce.managers.oracles.pollux_oracle import SERVERS
from testbed.reproduce.paper_experiment import PaperRow, Settings

FOLDER = os.environ.get("ARTIFACTS", "")
"""Where clones of the artifacts are, if they are."""


@pytest.fixture(scope="module")
def rows() -> dict[str, PaperRow]:
    return {row.label: row for row in reproduce(Settings(cases=0), Progress(quiet=True))}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("policy", ["tiresias", "srtf", "srsf"])
def test_muris_simulator_gives_the_same_mean_to_the_last_digit(
    rows: dict[str, PaperRow], policy: str, seed: int
) -> None:
    row = rows[f"muri-{seed} {policy}"]
    assert row.here["jct_s"] == pytest.approx(row.paper["jct_s"], abs=1e-6)
    assert row.here["jobs"] == row.paper["jobs"] == 40


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("policy", ["optimus", "tiresias"])
def test_polluxs_simulator_gives_nearly_the_same_mean(rows: dict[str, PaperRow], policy: str, seed: int) -> None:
    row = rows[f"small-{seed} {policy}"]
    assert row.here["jct_s"] == pytest.approx(row.paper["jct_s"], rel=0.02)
    assert row.here["jobs"] == row.paper["jobs"] == 40


def test_every_row_names_artifact_commit_licence_and_settings(rows: dict[str, PaperRow]) -> None:
    for row in rows.values():
        assert any(name in row.note for name in ("Rivendile/Muri at 4e69a78", "osdi21-artifact, at c793c70"))
        assert "(Apache-2.0)" in row.note
        assert "restart" in row.note


def test_a_folder_without_the_artifacts_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="none of the traces is there, expected clones of petuum/adaptdl"):
        reproduce(Settings(cases=0, trace=tmp_path), Progress(quiet=True))
    with pytest.raises(BadInputError, match="not a folder, expected one with clones of petuum/adaptdl"):
        reproduce(Settings(cases=0, trace=tmp_path / "none"), Progress(quiet=True))


def test_a_trace_that_is_missing_leaves_its_row_empty(tmp_path: Path) -> None:
    file = tmp_path / "Muri" / "simulator" / "trace-data" / "trace3.csv"
    file.parent.mkdir(parents=True)
    file.write_text("job_id,num_gpu,submit_time,iterations,model_name,duration,iteration_time\n0,1,0,10,vgg,1000,100\n")
    found = reproduce(Settings(cases=0, trace=tmp_path), Progress(quiet=True))
    with_numbers = [row.label for row in found if row.here]
    assert with_numbers == ["trace3 tiresias", "trace3 srtf", "trace3 srsf"]
    assert found[0].note.startswith("not found: simulator/workloads/workload-6.csv; ")


@pytest.mark.skipif(not FOLDER, reason="ARTIFACTS names no folder with clones of the artifacts")
@pytest.mark.parametrize("known", PUBLISHED, ids=lambda known: known.label)
def test_the_artifacts_own_traces(known: KnownResult) -> None:
    path = found_in(Path(FOLDER), known)
    assert path is not None
    here = compared(known, played(known, path, SERVERS))
    assert here["jobs"] == known.jobs
    # On other workloads Optimus's rounds depend on the last digit of interpolated speeds: there the docs say how far.
    exactly = known.artifact == "muri"
    assert here["difference"] == pytest.approx(0.0, abs=1e-9 if exactly else 0.03 if "-1" in known.file else 0.02)
