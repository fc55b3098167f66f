"""Numbers as people read them: what stands side by side agrees."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.metrics.comparison import side_by_side
from testbed.metrics.formats import change, percent, points, points_between, seconds, signed, time_text, with_spread
from testbed.report.page.tables_view import table_views
from testbed.report.tables import comparison_tables, render, run_table
from testbed.reproduce import number_formats

SHARES = st.floats(0.0, 1.0)


def run(scheduler: str, utilization: float) -> dict:
    idle = {"exposed": 0.0, "straggler": 0.0, "start": 0.0}
    numbers = {"gpu_utilization": utilization, "work_flop": 1.0, "allocated_gpu_s": 1.0, "gpu_idle_s": idle}
    return {"scheduler": scheduler, "jobs": [], "fidelity": {"verdict": "ok", "reasons": [], "findings": []}, **numbers}


def summary(before: float, after: float, seed: int = 1) -> dict:
    against = {"gpu_utilization_points": 100 * (after - before), "jct_change": {}}
    head = {"scenario": "x", "engine": "flow", "seed": seed, "scale": {"bandwidth": 1.0, "time": 1.0}}
    runs = [run("ecmp", before), run("crux", after)]
    return {**head, "runs": runs, "comparison": {"baseline": "ecmp", "crux": against}}


@given(SHARES, SHARES)
@example(0.73149, 0.73151)
@example(0.7315, 0.7324)
def test_a_shown_difference_is_the_difference_of_the_shown_values(before: float, after: float) -> None:
    assert Decimal(points_between(before, after)) == Decimal(percent(after)) - Decimal(percent(before))


@given(SHARES, SHARES)
@example(0.73149, 0.73151)
def test_it_is_so_in_the_tables_of_a_run_on_its_page_and_side_by_side(before: float, after: float) -> None:
    document = summary(before, after)
    table = run_table(document)
    cells = {str(column.header): list(column.cells) for column in table.columns}
    want = Decimal(percent(after)) - Decimal(percent(before))
    assert Decimal(str(cells["points"][1])) == want
    view = next(each for each in table_views(document) if each["id"] == "runs")
    place = [column["title"] for column in view["columns"]].index("points")
    assert Decimal(view["rows"][1][place][0]) == want
    (shown, *_) = comparison_tables(side_by_side({"a": document}))
    cells = {str(column.header): list(column.cells) for column in shown.columns}
    assert Decimal(str(cells["points"][1])) == want


@given(st.lists(st.tuples(SHARES, SHARES), min_size=2, max_size=5))
def test_it_is_so_for_means_over_seeds(pairs: list[tuple[float, float]]) -> None:
    runs = {str(seed): summary(*pair, seed) for seed, pair in enumerate(pairs)}
    means = comparison_tables(side_by_side(runs))[-1]
    cells = {str(column.header): [str(cell) for cell in column.cells] for column in means.columns}
    ecmp, crux = map(Decimal, cells["GPU util %"])
    shown = cells["points"][1].strip("()").partition("\N{PLUS-MINUS SIGN}")[0]
    assert Decimal(shown) == crux - ecmp


@given(st.floats(-1e6, 1e6))
@example(-0.04)
@example(0.04)
@example(-0.0)
def test_what_rounds_to_nothing_has_no_sign(value: float) -> None:
    forms = (signed, points, change, number_formats.points, number_formats.change, number_formats.fine_change)
    for text in (form(value) for form in forms):
        assert (text[0] in "+-") == (float(text) != 0.0)


def test_utilisations_that_are_shown_apart_never_stand_beside_a_difference_of_nothing() -> None:
    assert (percent(0.73149), percent(0.73151), points_between(0.73149, 0.73151)) == ("73.1", "73.2", "+0.1")
    assert points_between(0.73151, 0.73149) == "-0.1"
    assert "-0.0" not in render(comparison_tables(side_by_side({"a": summary(0.73151, 0.73149)})))


@pytest.mark.parametrize(("difference", "spread"), [(0.01, 0.0), (-0.01, None), (0.0, 0.0)])
def test_a_difference_that_is_shown_as_nothing_proves_nothing(difference: float, spread: float | None) -> None:
    assert with_spread(difference, spread).startswith("(0.0")


@given(st.floats(1e-12, 1e9), st.integers(0, 3))
@example(28e-6, 3)
@example(0.0004, 3)
@example(0.04, 1)
def test_a_time_that_is_not_nothing_is_never_shown_as_nothing(value: float, digits: int) -> None:
    for text in (seconds(value, digits), seconds(-value, digits), time_text(value, digits)):
        assert any(digit in "123456789" for digit in text.partition("e")[0]), text


def test_times_are_in_seconds_where_the_digits_show_them_else_in_a_smaller_unit() -> None:
    assert [seconds(value) for value in (0.0, 1.7, 0.0123, 28e-6)] == ["0.000", "1.700", "0.012", "28us"]
    assert [time_text(value) for value in (0.0, 1.72, 0.4, 28e-6)] == ["0.0 s", "1.7 s", "400ms", "28us"]
