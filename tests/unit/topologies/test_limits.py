"""What is read is a regular file of a bounded size, and what is said of it is one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from topologies.limits import LimitError, one_line, read_text


def fabric_of(**changed: int) -> None:
    usual = {"hosts": 2, "gpus_per_host": 2, "nics_per_host": 1, "tors": 1, "aggregations": 1, "parallel_links": 1}
    clos(**{**usual, **changed}, port_rate=1e9, fabric_rate=1e9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "a pipe and no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "a device and no regular file"),
        (lambda path: path.write_bytes(b"x" * 11), "11 bytes, more than 10 bytes"),
    ],
)
def test_what_never_ends_or_is_too_large_is_not_read(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(LimitError, match=message):
        read_text(path, 10)


def test_a_directory_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path, 10)


def test_a_file_of_exactly_the_limit_is_read_with_its_ends_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\r\nb\rc\nde")
    assert read_text(path, 9) == "a\nb\nc\nde"


@given(st.text())
def test_one_line_is_printable_and_bounded(text: str) -> None:
    assert one_line(text, 60).isprintable()
    assert len(one_line(text, 60)) <= 60 + len(" [..] ")


@given(st.text(st.characters(categories=("L", "N")), max_size=60))
def test_a_line_that_is_fine_stays_as_it_is(text: str) -> None:
    assert one_line(text, 60) == text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hosts": 65537}, "hosts must be at most 65536"),
        ({"gpus_per_host": 10**9}, "hosts must have at most 2000000 links inside"),
        ({"tors": 10**9, "hosts": 10**9}, "hosts must be at most 65536"),
        ({"aggregations": 10**9}, "switches must be at most 65536 together"),
        ({"parallel_links": 10**9}, "links of the fabric must be at most 2000000"),
    ],
)
def test_a_fabric_is_refused_before_it_is_built(changed: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fabric_of(**changed)
