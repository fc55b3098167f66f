"""A damaged table is refused with its line; what is only empty is counted."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.table import EMPTY_ROW, Row, TraceError, first_line, read_rows, seconds_of

COLUMNS = ("job", "gpus", "start")


def rows_of(tmp_path: Path, data: bytes, skipped: Counter[str] | None = None) -> list[Row]:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    return list(read_rows(path, COLUMNS, Counter() if skipped is None else skipped))


def error_of(tmp_path: Path, data: bytes) -> str:
    with pytest.raises(TraceError) as caught:
        for row in rows_of(tmp_path, data):
            row.count("gpus")
            row.time("start")
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_a_byte_order_mark_and_line_ends_of_another_system_do_no_harm(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, b"\xef\xbb\xbfjob,gpus,start\r\na,8,2023-07-15 00:50:00\r\n")
    assert [(row.line, row.text("job"), row.count("gpus")) for row in rows] == [(2, "a", 8)]


def test_ninety_eight_unnamed_columns_do_no_harm(tmp_path: Path) -> None:
    names = ",".join(f"Unnamed: {number}" for number in range(98))
    skipped: Counter[str] = Counter()
    data = f"job,gpus,start,{names}\na,8,{',' * 98}\nb,1,\n{',' * 100}\n".encode()
    assert [row.text("job") for row in rows_of(tmp_path, data, skipped)] == ["a", "b"]
    assert skipped == {EMPTY_ROW: 1}


def test_blank_cells_behind_the_last_column_do_no_harm_and_others_do(tmp_path: Path) -> None:
    assert len(rows_of(tmp_path, b"job,gpus,start\na,8,,,,\n")) == 1
    said = error_of(tmp_path, b"job,gpus,start\na,8,,x\n")
    assert said == "t.csv:2: the line has 4 values, expected 3, one per column"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "t.csv:1: the file is empty, expected a header with the columns job, gpus, start"),
        (b"job,cpus\n", "t.csv:1: no columns gpus, start, expected the columns job, gpus, start"),
        (b"job,gpus,start,job\n", "t.csv:1: two columns are called job, expected each column once"),
        (b"job,gpus,start\na,8,\nb,4\n", "t.csv:3: the line ends after 2 of 3 values, expected a whole line"),
        (b"job,gpus,start\na,-8,\n", "t.csv:2: gpus is -8, expected 0 or more"),
        (b"job,gpus,start\na,eight,\n", "t.csv:2: gpus is 'eight', expected a number"),
        (b"job,gpus,start\na,1_0,\n", "t.csv:2: gpus is '1_0', expected a number"),
        (b"job,gpus,start\na,inf,\n", "t.csv:2: gpus is 'inf', expected a number"),
        (b"job,gpus,start\na,1.5,\n", "t.csv:2: gpus is 1.5, expected a whole number"),
        (b"job,gpus,start\na,1,noon\n", "t.csv:2: start is 'noon', expected a time such as 2023-07-15 00:50:00"),
        (b'job,gpus,start\na,1,\n"b,1,\n', "t.csv:3: damaged line (unexpected end of data), expected whole CSV lines"),
        (b"job,gpus,start\na,1,\n\xff,1,\n", "t.csv:3: not UTF-8 text, expected a CSV file"),
    ],
)
def test_damage_names_the_line_and_what_was_expected(tmp_path: Path, data: bytes, message: str) -> None:
    assert error_of(tmp_path, data) == message


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    with pytest.raises(TraceError, match=r"none\.csv: cannot be read \(No such file or directory\)"):
        list(read_rows(path, COLUMNS, Counter()))
    with pytest.raises(TraceError, match="cannot be read"):
        first_line(path)


def test_a_blank_is_no_value_and_no_error(tmp_path: Path) -> None:
    row = rows_of(tmp_path, b"job,gpus,start\na,nan,None\n")[0]
    assert (row.count("gpus"), row.time("start"), row.number("absent"), row.text("absent")) == (None, None, None, "")


def test_lines_count_from_the_top_of_the_file_whatever_stands_above_the_header(tmp_path: Path) -> None:
    assert error_of(tmp_path, b"# a note\n# another\njob,gpus,start\na,x,\n").startswith("t.csv:4:")


def test_times_are_read_with_and_without_an_offset() -> None:
    noon = seconds_of("2023-03-01 12:00:00")
    assert noon is not None
    assert seconds_of("2023-03-01 20:00:00+08:00") == noon
    assert seconds_of("2023/3/1 12:00") == noon
    assert seconds_of("1932025x") is None


def test_an_error_survives_the_way_between_processes() -> None:
    error = TraceError("a.csv", 3, "wrong", "right")
    assert str(pickle.loads(pickle.dumps(error))) == "a.csv:3: wrong, expected right"


@settings(max_examples=60)
@given(data=st.binary(max_size=80))
def test_any_bytes_give_rows_or_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(b"job,gpus,start\n" + data)
    try:
        for row in read_rows(path, COLUMNS, Counter()):
            row.count("gpus")
            row.time("start")
    except TraceError as error:
        assert "\n" not in str(error)
