"""Tables fit the terminal: nothing is cut, and what is left out is said."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from testbed.report.fitting import new_table
from testbed.report.terminal import PIPE_WIDTH, output, render, say

WORDS = "a scheduler that a person of much patience describes in a sentence"


def example() -> object:
    table = new_table("numbers", left=("name",), right=("mean s", "p50 s", "work"), optional=("p50 s", "work"))
    table.add_column("summary", min_width=20)
    table.add_row("first", "1.000", "1.500", "12.50PFLOP", WORDS)
    table.add_row("second", "22.250", "21.000", "1.25PFLOP", "short")
    return table


def lines_at(width: int) -> list[str]:
    lines = render([example()], width=width).splitlines()  # type: ignore[list-item]
    assert max(map(len, lines)) <= width
    return lines


def words_of(lines: list[str]) -> list[str]:
    return re.findall(r"\S+", " ".join(lines))


def test_a_table_that_fits_is_shown_whole_and_nothing_is_said() -> None:
    lines = lines_at(140)
    assert WORDS in "\n".join(lines) and "p50 s" in lines[2] and "left out" not in "\n".join(lines)


def test_texts_wrap_between_words_before_a_column_is_left_out() -> None:
    text = lines_at(70)
    assert {"12.50PFLOP", "1.500", *WORDS.split()} <= set(words_of(text)) and "left out" not in "\n".join(text)


def test_columns_are_left_out_in_their_order_and_named() -> None:
    assert lines_at(56)[-1] == "left out at 56 columns: p50 s"
    assert lines_at(44)[-1] == "left out at 44 columns: p50 s, work"


@pytest.mark.parametrize("width", [20, 30, 40])
def test_where_not_even_words_fit_they_break_and_no_character_is_lost(width: int) -> None:
    shown = Counter("".join(words_of(lines_at(width))))
    assert shown["…"] == 0
    assert Counter(WORDS.replace(" ", "") + "first" + "second" + "1.000" + "22.250") <= shown


def test_a_table_of_many_numbers_goes_on_below_beside_its_first_column_and_numbers_stay_whole() -> None:
    pairs = [title for number in range(9) for title in (f"measure-{number} paper", "here")]
    table = new_table("", left=("row",), right=pairs, splits=range(3, 19, 2))
    table.add_row("the first row", *(f"{number}.125%" for number in range(18)))
    lines = render([table], width=60).splitlines()
    assert sum("the first row" in line for line in lines) > 1
    assert max(map(len, lines)) <= 60
    numbers = [word for line in lines for word in line.split() if word.endswith("%")]
    assert numbers == [f"{number}.125%" for number in range(18)]
    assert render([table], width=300).count("the first row") == 1


@given(st.lists(st.text("abc ", min_size=1, max_size=60), min_size=1, max_size=4), st.integers(60, 160))
def test_every_word_of_every_row_is_there_at_any_width(texts: list[str], width: int) -> None:
    table = new_table("", left=("name",), last="text")
    for number, text in enumerate(texts):
        table.add_row(f"row{number}", text)
    shown = "".join(render([table], width=width).split())
    assert all(f"row{number}" in shown for number in range(len(texts)))
    assert sum(shown.count(c) for c in "bc") >= sum(text.count(c) for text in texts for c in "bc")


def test_on_a_pipe_the_width_is_stated_and_columns_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output().width == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "93")
    assert output().width == 93
    monkeypatch.setenv("COLUMNS", "many")
    assert output().width == PIPE_WIDTH


def test_lines_wrap_on_a_terminal_and_stay_whole_on_a_pipe() -> None:
    line = "peak load: 93% of the forwarding budget of this machine"
    terminal, pipe = io.StringIO(), io.StringIO()
    say([line], Console(file=terminal, width=30, force_terminal=True, color_system=None))
    say([line], Console(file=pipe, width=30))
    assert terminal.getvalue() == "peak load: 93% of the\n  forwarding budget of this\n  machine\n"
    assert pipe.getvalue() == f"{line}\n"
