"""A format is known by its header or its folder; the testbed's own CSV gives back what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.cli.main import explain
from workloads.traces import acme, alibaba, helios, itp, philly, testbed_csv
from workloads.traces.registry import FORMATS, read_trace, recognise
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import FATES, Trace, TraceError, TraceJob

Writer = Callable[[str, str], Path]
WORDS = st.text("abZ09,\"'_ü.-#", min_size=1, max_size=8)
SECONDS = st.floats(1e-3, 1e9)


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        (philly.REQUIRED, "philly"),
        (itp.REQUIRED, "itp"),
        (helios.REQUIRED, "helios"),
        (acme.REQUIRED, "acme"),
        (alibaba.PODS, "alibaba-v2023"),
        (testbed_csv.REQUIRED, "testbed"),
    ],
)
def test_a_header_tells_its_format_whatever_else_it_has(written: Writer, columns: tuple[str, ...], name: str) -> None:
    assert recognise(written("t.csv", ",".join(["more", *reversed(columns)]) + "\n")) == name


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("job.csv", "worker.csv", "topo.csv"), "lingjun"),
        (("pai_task_table.csv",), "alibaba-v2020"),
    ],
)
def test_the_files_of_a_folder_tell_its_format(written: Writer, files: tuple[str, ...], name: str) -> None:
    paths = [written(f"d/{file}", "x\n") for file in files]
    assert recognise(paths[0].parent) == name


def test_other_forms_are_told_too(written: Writer) -> None:
    assert recognise(written("cluster_job_log", "\n [{}]")) == "philly"
    assert recognise(written("itp/cluster01.csv", ",".join(itp.REQUIRED)).parent) == "itp"
    assert recognise(written("pai_task_table.csv", "a,b\n")) == "alibaba-v2020"


def test_what_is_of_no_format_says_what_was_looked_for(written: Writer) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(written("t.csv", "a,b\n1,2\n"))
    said = str(caught.value)
    assert "t.csv:1: the columns 'a, b' are of no known format, expected one of: " in said
    assert all(f"{name} (" in said for name in FORMATS)
    with pytest.raises(TraceError, match="this folder is of no known format"):
        read_trace(written("d/readme.txt", "x").parent)


def test_a_damaged_trace_ends_a_command_with_one_line_and_bad_input(
    written: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(written("t.csv", "job_id,submission_time,duration,num_gpu\na,1\n"))
    assert explain(caught.value) == 2
    assert capsys.readouterr().err.endswith("t.csv:2: the line ends after 2 of 4 values, expected a whole line\n")


def test_a_format_can_be_named_and_an_unknown_name_is_refused(written: Writer) -> None:
    with pytest.raises(TraceError, match=r"no columns job_id, submission_time, duration, num_gpu"):
        read_trace(written("t.csv", "name\n"), "itp")
    with pytest.raises(ValueError, match="unknown format 'xls', expected one of: lingjun"):
        read_trace(written("t.csv", "name\n"), "xls")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    names = draw(st.lists(WORDS, min_size=1, max_size=5, unique=True))
    gpus = draw(st.integers(1, 9999))
    jobs = [
        TraceJob(
            name,
            draw(SECONDS),
            draw(SECONDS),
            gpus,
            draw(WORDS),
            draw(WORDS),
            draw(WORDS),
            draw(st.sampled_from(FATES)),
            tuple(draw(st.lists(WORDS, max_size=2))),
            draw(st.integers(1, 9)),
            draw(st.none() | st.integers(1, gpus)),
            draw(st.none() | st.integers(gpus, 2 * gpus)),
            draw(st.booleans()),
        )
        for name in names
    ]
    skipped = {"no GPUs": draw(st.integers(1, 99))}
    ordered = tuple(sorted(jobs, key=lambda job: job.submit_s))
    return Trace("t", ordered, skipped, draw(st.booleans()), ("a note: with a colon",))


@settings(max_examples=25)
@given(trace=traces())
def test_a_trace_is_read_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    path = tmp_path_factory.mktemp("own") / "t.csv"
    testbed_csv.write(trace, path)
    assert read_trace(path) == trace


def test_a_synthetic_trace_keeps_its_label_on_the_way_through_a_file(tmp_path: Path) -> None:
    trace = lingjun_like(1, jobs=60)
    testbed_csv.write(trace, tmp_path / "s.csv")
    back = read_trace(tmp_path / "s.csv")
    assert back == trace
    assert back.synthetic
    assert back.summary.startswith("lingjun-like-1 (synthetic): ")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",1,1,1,pass,1", "name is empty, expected a name"),
        ("a,1,1,1,lost,1", "fate is 'lost', expected one of pass, kill, fail"),
        ("a,1,1,1,pass,0", "attempts is 0, expected 1 or more"),
        ("a,-1,1,1,pass,1", "submit_s is -1, expected 0 or more"),
    ],
)
def test_a_wrong_cell_of_the_own_csv_names_its_line(written: Writer, row: str, message: str) -> None:
    path = written("t.csv", f"# name: x\nname,submit_s,duration_s,gpus,fate,attempts\n{row}\n")
    with pytest.raises(TraceError) as caught:
        testbed_csv.read(path)
    assert str(caught.value) == f"{path}:3: {message}"


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ("5,,", "min_gpus is 5, expected 1 to 4 (gpus)"),
        ("0,,", "min_gpus is 0, expected 1 to 4 (gpus)"),
        (",3,", "max_gpus is 3, expected 4 (gpus) or more"),
        (",,perhaps", "opportunistic is 'perhaps', expected yes, no or nothing"),
    ],
)
def test_bounds_of_an_elastic_job_lie_around_its_gpus(written: Writer, bounds: str, message: str) -> None:
    path = written("t.csv", f"name,submit_s,duration_s,gpus,min_gpus,max_gpus,opportunistic\na,1,1,4,{bounds}\n")
    with pytest.raises(TraceError) as caught:
        testbed_csv.read(path)
    assert str(caught.value) == f"{path}:2: {message}"


def test_a_name_that_a_csv_cannot_hold_is_refused() -> None:
    for wrong in (TraceJob(" a", 0, 1, 1), TraceJob("a", 0, 1, 1, hosts=("h;1",))):
        with pytest.raises(ValueError, match="job '"):
            testbed_csv.text_of(Trace("t", (wrong,), {}))
