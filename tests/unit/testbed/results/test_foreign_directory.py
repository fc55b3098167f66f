"""A run directory may come from anywhere: what its files say never leads out of it, and is checked like a scenario."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.cli.main import main
from testbed.errors import BadInputError, RunFailedError
from testbed.results.plain_names import LONGEST_SCHEDULER, plain_name, plain_parts, scheduler_name
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from testbed.sweep.store import Store, unpack
from testbed.sweep.values import SweepPoint

WriteRun = Callable[..., RunDirectory]
BAD_NAMES = ["", ".", "..", "../x", "/etc", "a/../../x", "a/b", ".hidden", "a\0b", "a\nb", "a\x1b[2J", "\ud800"]


def edit(file: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(file.read_text("utf-8"))
    change(document)
    file.write_text(json.dumps(document), "utf-8")


def called(directory: Path, folder: str, name: str) -> None:
    """Let the files of the run say that the scheduler of ``folder`` is called ``name``."""
    edit(directory / folder / "run.json", lambda run: run.update(scheduler=name))
    edit(directory / "summary.json", lambda summary: summary["runs"][-1].update(scheduler=name))


def all_files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["x/../../outside", "../outside", "/tmp/outside-of-a-run"])
@pytest.mark.parametrize("folder_too", [False, True])
def test_a_name_in_run_json_leads_no_file_out_of_the_directory(
    write_run: WriteRun,
    records: tuple[RunRecord, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    folder_too: bool,
) -> None:
    directory = write_run(*records).path
    edit(directory / "crux" / "run.json", lambda run: run.update(scheduler=name))
    if folder_too:
        edit(directory / "summary.json", lambda summary: summary["runs"][-1].update(scheduler=name))
        if not name.startswith("/"):
            (directory / "x").mkdir()
            shutil.copytree(directory / "crux", directory / name)
    before = all_files(tmp_path.parent)
    assert main(["report", str(directory)]) == 2
    assert {path for path in all_files(tmp_path.parent) - before if directory not in path.parents} == set()
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"{directory}: changed since the run ended: ")
    assert len(said) == 2 and str(directory) in said[1] and "Traceback" not in said[1]


def test_a_record_must_be_of_the_scheduler_of_its_folder(write_run: WriteRun, records: tuple[RunRecord, ...]) -> None:
    directory = write_run(*records)
    edit(directory.path / "crux" / "run.json", lambda run: run.update(scheduler="ecmp"))
    with pytest.raises(BadInputError, match=r"run\.json: damaged \(scheduler 'ecmp' instead of that of its folder\)"):
        directory.read_records()


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_name_that_is_not_plain_becomes_a_path(tmp_path: Path, name: str) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    for use in (directory.folder, directory.log_file, directory.read_record):
        with pytest.raises(BadInputError):
            use(name)
    for use in (lambda text: directory.write_text(text, ""), directory.read_json):
        if name != "a/b":
            with pytest.raises(BadInputError):
                use(name)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@given(st.text(max_size=20) | st.sampled_from(BAD_NAMES))
def test_a_plain_name_stays_where_it_is_put(name: str) -> None:
    try:
        plain = plain_name(name, "the name")
    except ValueError as error:
        assert len(str(error).splitlines()) == 1 and str(error).isprintable()
        return
    assert os.path.normpath(f"/a/{plain}") == f"/a/{plain}" and Path("/a", plain).parent == Path("/a")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_path_is_plain_if_all_its_parts_are(name: str) -> None:
    if name != "a/b":
        with pytest.raises(ValueError):
            plain_parts(f"run/{name}", "the file")
    assert plain_parts("run/crux/run.json", "the file") == ("run", "crux", "run.json")


def test_a_name_has_a_length() -> None:
    assert scheduler_name("a" * LONGEST_SCHEDULER)
    with pytest.raises(ValueError, match="expected a name of 120 at most"):
        scheduler_name("é" * LONGEST_SCHEDULER)


def test_nothing_is_written_through_a_folder_that_is_a_link(
    write_run: WriteRun, records: tuple[RunRecord, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, elsewhere = write_run(*records).path, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (directory / "plots").symlink_to(elsewhere)
    assert main(["report", str(directory), "--plots"]) == 2
    assert list(elsewhere.iterdir()) == []
    expected = f"{directory}/plots: leads elsewhere, expected a folder of the run directory\n"
    assert capsys.readouterr().err == expected


def test_a_file_beyond_the_limit_is_refused_without_being_read(
    write_run: WriteRun, records: tuple[RunRecord, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(*records).path
    os.truncate(directory / "crux" / "links.csv", 2**40)
    assert main(["report", str(directory)]) == 2
    changed, refused = capsys.readouterr().err.splitlines()
    assert changed == f"{directory}: changed since the run ended: crux/links.csv"
    assert refused == f"{directory}/crux/links.csv: cannot be read: 1099511627776 bytes, more than 536870912 bytes"


@pytest.mark.parametrize("text", ['"time_s\nlink', '{"\u202e": [', "x" * 100_000])
@pytest.mark.parametrize("name", ["links.csv", "decisions.json"])
def test_what_is_quoted_of_a_damaged_file_stays_on_one_line(
    write_run: WriteRun, records: tuple[RunRecord, ...], name: str, text: str
) -> None:
    directory = write_run(*records)
    (directory.path / "crux" / name).write_text(text, "utf-8")
    with pytest.raises(BadInputError, match=name) as error:
        directory.read_record("crux")
    assert str(error.value).isprintable() and len(str(error.value)) < 1100


def test_a_named_pipe_in_place_of_a_file_is_refused_at_once(
    write_run: WriteRun, records: tuple[RunRecord, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(*records).path
    (directory / "crux" / "links.csv").unlink()
    os.mkfifo(directory / "crux" / "links.csv")
    assert main(["report", str(directory)]) == 2
    assert "links.csv: cannot be read: a pipe and no regular file\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["../outside", "run/../../outside", "/tmp/outside-of-a-run", "run/./x", "run//x", "", "..", "run/.."]
)
def test_files_from_another_node_are_unpacked_inside_the_folder_of_their_point_or_not_at_all(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "sweep" / "point"
    folder.mkdir(parents=True)
    with pytest.raises(RunFailedError, match="expected a plain name"):
        unpack({"run/summary.json": b"{}", name: b"x"}, folder)
    assert all_files(tmp_path) == set()


def test_the_note_of_a_point_names_no_directory_outside_of_it(
    write_run: WriteRun, records: tuple[RunRecord, ...], tmp_path: Path
) -> None:
    outside = write_run(*records).path
    store, point = Store(tmp_path / "sweep"), SweepPoint("hello.yaml", "flow", (), (), 1, "print")
    folder = store.prepare(point)
    for name, kept in ((f"../../{outside.name}", False), (outside.name, True)):
        if kept:
            outside.rename(folder / outside.name)
        RunDirectory(folder).write_json("point.json", {"fingerprint": "print", "directory": name})
        assert (store.kept(point) is not None) is kept


DAMAGE: list[tuple[str, Callable[[Any], None]]] = [
    ("runs.0.scheduler", lambda run: run.update(scheduler=7)),
    ("runs.0.fidelity.verdict", lambda run: run["fidelity"].update(verdict="great")),
    ("runs.0.fidelity.reasons", lambda run: run["fidelity"].update(reasons="none")),
    ("runs.0.gpu_idle_s", lambda run: run.pop("gpu_idle_s")),
    ("runs.0.gpu_utilization", lambda run: run.update(gpu_utilization="half")),
    ("runs.0.jobs", lambda run: run.update(jobs=None)),
    ("runs.0.jobs.0.name", lambda run: run["jobs"][0].update(name=["big"])),
    ("runs.0.jobs.0.gpu_idle_s.exposed", lambda run: run["jobs"][0]["gpu_idle_s"].update(exposed=float("nan"))),
    ("job: iteration_s.mean is 'x'", lambda run: run["jobs"][0].update(iteration_s={"mean": "x"})),
]


@pytest.mark.parametrize(("place", "change"), DAMAGE)
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_a_damaged_summary_is_one_line_that_names_the_place(
    write_run: WriteRun,
    records: tuple[RunRecord, ...],
    capsys: pytest.CaptureFixture[str],
    verb: str,
    place: str,
    change: Callable[[Any], None],
) -> None:
    directory = write_run(*records).path
    edit(directory / "summary.json", lambda summary: change(summary["runs"][0]))
    assert main([verb, str(directory)]) == 2
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{directory}/summary.json: damaged ({place}")


ROWS = [
    ("links.csv", "nan", "links.csv:2: not a row (nan is not finite), expected link rows"),
    ("links.csv", "inf", "links.csv:2: not a row (inf is not finite), expected link rows"),
    ("links.csv", "\x00", "links.csv:2: not a row ("),
    ("iterations.csv", "9" * 140_000, "iterations.csv:2: not a row (field larger than field limit (131072))"),
    ("iterations.csv", "a\x1b[2Jb", "iterations.csv:2: not a row (could not convert string to float: "),
]


@pytest.mark.parametrize(("name", "cell", "complaint"), ROWS, ids=range(len(ROWS)))
def test_a_damaged_cell_is_one_line_that_can_be_printed(
    write_run: WriteRun, records: tuple[RunRecord, ...], name: str, cell: str, complaint: str
) -> None:
    directory = write_run(*records)
    file = directory.path / "crux" / name
    head, first, *rest = file.read_text().splitlines()
    cells = first.split(",")
    cells[3] = cell
    file.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    with pytest.raises(BadInputError) as refusal:
        directory.read_record("crux")
    said = str(refusal.value)
    assert said.startswith(f"{file.parent}/{complaint}") and said.isprintable() and len(said) < 1000


VALUES: list[tuple[str, Callable[[Any], None], str]] = [
    (
        "crux/decisions.json",
        lambda rows: rows[0].update(confirmed_s={}),
        "confirmed_s: expected a number, not an object",
    ),
    ("crux/decisions.json", lambda rows: rows[0].update(cause=["x"]), "cause: expected a string, not an array"),
    ("crux/run.json", lambda run: run["environment"].update(cpu=[[1, 2]]), "environment.cpu: expected 5 columns"),
    (
        "crux/run.json",
        lambda run: run["environment"].update(link_rates={"a": [1]}),
        "environment.link_rates.a: expected",
    ),
    ("crux/run.json", lambda run: run["environment"].update(timers="x"), "environment.timers: expected an array"),
    ("experiment.json", lambda found: found["fabric"]["links"].pop("tor0->agg0"), "reverse 'tor0->agg0' is no link"),
    ("experiment.json", lambda found: found["jobs"][0].update(name="a\nb"), "job.name: 'a\\nb' is no name, expected"),
    ("summary.json", lambda found: found.update(runs=[[[]]]), "runs.0: Input should be"),
]


@pytest.mark.parametrize(("name", "change", "complaint"), VALUES, ids=range(len(VALUES)))
def test_a_wrong_value_is_one_line(
    write_run: WriteRun,
    records: tuple[RunRecord, ...],
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Callable[[Any], None],
    complaint: str,
) -> None:
    directory = write_run(*records).path
    edit(directory / name, change)
    assert main(["report", str(directory)]) == 2
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{directory}/{name}: damaged (") and complaint in said


def test_numbers_that_no_run_has_are_not_drawn(
    write_run: WriteRun, records: tuple[RunRecord, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(*records).path
    edit(directory / "crux" / "run.json", lambda run: run["windows"]["big"].update(end_s=1e308, start_s=-1e308))
    assert main(["report", str(directory)]) in (0, 2)
    assert "please report" not in capsys.readouterr().err
