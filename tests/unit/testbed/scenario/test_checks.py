"""Checks say what they mean, evaluate on a summary, and refuse what they cannot read."""

from __future__ import annotations

import ast
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.metrics.checks import CheckError, parse_check, unknown_names


def run_of(scheduler: str, utilization: float, gpt_s: float, jct_s: float) -> dict[str, Any]:
    """A run as ``summary.json`` has it, with one job."""
    job = {"name": "gpt", "iteration_s": {"mean": gpt_s}, "jct_s": jct_s, "level": None, "jct_source": "projected"}
    bert = {"name": "bert-0", "iteration_s": {"mean": 2 * gpt_s}, "jct_s": jct_s}
    fidelity = {"verdict": "ok", "min_idle_cpu": 0.4, "reasons": []}
    return {"scheduler": scheduler, "gpu_utilization": utilization, "jobs": [job, bert], "fidelity": fidelity}


SUMMARY: dict[str, Any] = {
    "runs": [run_of("ecmp", 0.65, 1.7, 100.0), run_of("crux", 0.78, 1.4, 80.0)],
    "comparison": {"baseline": "ecmp", "crux": {"gpu_utilization_points": 13.0}},
}


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("crux.gpu_utilization - ecmp.gpu_utilization >= 5 points", True),
        ("crux.gpu_utilization - ecmp.gpu_utilization >= 14%", False),
        ("crux.gpt.jct_s < 0.9 * ecmp.gpt.jct_s", True),
        ("crux.gpt.jct_s < 0.8 * ecmp.gpt.jct_s", False),
        ("gpt.iteration_s.mean <= 1.75s", True),
        ("gpt.iteration_s.mean <= 1500ms", False),
        ("gpt.iteration_s.mean < bert-0.iteration_s.mean", True),
        ("fidelity.min_idle_cpu >= 35%", True),
        ("crux.fidelity.verdict == ok", True),
        ("fidelity.verdict != 'ok'", False),
        ("comparison.crux.gpu_utilization_points > 10", True),
        ("(crux.gpt.jct_s + 20s) / ecmp.gpt.jct_s == 1", True),
        ("-1 < gpu_utilization", True),
        ("1 + 2 * 3 == 7", True),
        ("10 - 2 - 3 == 5", True),
    ],
)
def test_checks_hold_or_fail(text: str, passed: bool) -> None:
    assert parse_check(text).evaluate(SUMMARY).passed is passed


def test_a_bare_name_must_hold_for_every_scheduler_and_shows_the_one_that_fails() -> None:
    result = parse_check("gpt.iteration_s.mean <= 1.5s").evaluate(SUMMARY)
    assert (result.passed, result.left, result.right) == (False, 1.7, 1.5)
    assert result.detail == "ecmp: 1.7 <= 1.5 does not hold; crux: 1.4 <= 1.5 holds"


def test_an_old_name_is_read_as_todays_and_the_result_says_so() -> None:
    check = parse_check("crux.gpt.jct_is == 'projected'")
    assert unknown_names(check, ["crux"], ["gpt"]) == []
    result = check.evaluate(SUMMARY)
    assert result.passed
    assert result.detail == ("'projected' == 'projected' holds; 'crux.gpt.jct_is' is now called 'crux.gpt.jct_source'")
    assert parse_check("crux.gpt.jct_source == 'projected'").evaluate(SUMMARY).detail.endswith("holds")


def test_repeated_runs_of_a_scheduler_are_averaged() -> None:
    summary = {"runs": [run_of("crux", 0.7, 1.0, 1.0), run_of("crux", 0.8, 1.0, 1.0)]}
    assert parse_check("crux.gpu_utilization > 0").evaluate(summary).left == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("crux.gtp.jct_s < 1", "'crux.gtp.jct_s' is not in the summary"),
        ("crux.gpt.iteration_s < 1", "'crux.gpt.iteration_s' is not a single value"),
        ("crux.gpt.level < 1", "'crux.gpt.level' has no value in this run"),
        ("crux.gpu_utilization / 0 < 1", "division by zero"),
        ("crux.fidelity.verdict * 2 < 1", "'ok' is a word, '*' needs numbers"),
        ("crux.fidelity.verdict < 1", "cannot compare 'ok' with 1"),
    ],
)
def test_what_cannot_be_evaluated_fails_and_says_why(text: str, detail: str) -> None:
    result = parse_check(text).evaluate(SUMMARY)
    assert (result.passed, result.left, result.detail) == (False, None, detail)


def test_a_summary_without_runs_satisfies_nothing() -> None:
    assert not parse_check("gpt.jct_s > 0").evaluate({"runs": []}).passed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "check '' ends too early, expected a number or a name"),
        ("gpt.jct_s", "check 'gpt.jct_s' ends too early, expected a comparison (<=, >=, <, >, ==, !=)"),
        ("gpt.jct_s <=", "check 'gpt.jct_s <=' ends too early, expected a number or a name"),
        ("gpt.jct_s + 1", "check 'gpt.jct_s + 1' ends too early, expected a comparison (<=, >=, <, >, ==, !=)"),
        ("1 < 2 < 3", "'<' is out of place in check '1 < 2 < 3', expected the end of the check"),
        ("(1 + 2 < 3", "'<' is out of place in check '(1 + 2 < 3', expected ')'"),
        ("* 2 < 3", "'*' is out of place in check '* 2 < 3', expected a number or a name"),
        ("1 2 < 3", "'2' is out of place in check '1 2 < 3', expected a comparison (<=, >=, <, >, ==, !=)"),
        ("a.b < $", "cannot read '$' in check 'a.b < $', expected a number or a name"),
        ("__import__('os') < 1", "'(' is out of place in check '__import__('os') < 1', expected a comparison"),
    ],
)
def test_what_cannot_be_parsed_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(CheckError) as error:
        parse_check(text)
    assert str(error.value).startswith(message)


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(CheckError, match="unknown unit 'pints' in check 'a < 5 pints', expected one of ns, us, ms"):
        parse_check("a < 5 pints")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("gtp.jct_s < 1", "'gtp' is no scheduler, job or metric of this scenario, did you mean 'gpt'?"),
        ("crux.gpt.jct < 1", "'jct' is no metric of a job, did you mean 'jct_s'?"),
        (
            "crux.gpu_utilisation < 1",
            "'gpu_utilisation' is no scheduler, job or metric of this scenario, did you mean 'gpu_utilization'?",
        ),
        ("crux < 1", "no metric is named"),
        ("gpt-gpu_utilization < 1", "'gpt-gpu_utilization' is no scheduler"),
    ],
)
def test_names_that_a_run_will_not_report_are_found_before_the_run(text: str, line: str) -> None:
    (found,) = unknown_names(parse_check(text), ["ecmp", "crux"], ["gpt"])
    assert line in found


def test_names_that_a_run_will_report_are_accepted() -> None:
    check = parse_check("crux.gpt.jct_s + gpt.iteration_s.p99 + fidelity.min_idle_cpu + comparison.x < 1")
    assert unknown_names(check, ["ecmp", "crux"], ["gpt"]) == []


ARITHMETIC = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    max_leaves=8,
)


@given(ARITHMETIC, st.integers(-1000, 1000), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_arithmetic_agrees_with_python(expression: str, other: int, sign: str) -> None:
    compare = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }[sign]
    value = _python_value(ast.parse(expression, mode="eval").body)
    assert parse_check(f"{expression} {sign} {other}").evaluate({"runs": []}).passed is compare(value, other)


def _python_value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    assert isinstance(node, ast.BinOp)
    signs = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
    return int(signs[type(node.op)](_python_value(node.left), _python_value(node.right)))


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    try:
        check = parse_check(text)
    except CheckError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert check.text == " ".join(text.split())


def test_a_check_nested_too_deep_is_refused() -> None:
    with pytest.raises(CheckError, match="too long, expected at most 200"):
        parse_check("(" * 5000 + "1" + ")" * 5000 + " < 2")


@pytest.mark.parametrize(
    "summary",
    [
        {"runs": [{"gpu_utilization": 0.5}]},
        {"runs": [{"scheduler": ["crux"], "gpu_utilization": 0.5}]},
        {"runs": [{"scheduler": "crux", "gpu_utilization": 10**4000}]},
        {"runs": [{"scheduler": "crux"}]},
        {"runs": [{"scheduler": "crux", "jobs": 3}, 4]},
        {"runs": 3, "comparison": []},
        {},
    ],
)
@pytest.mark.parametrize("text", ["gpu_utilization / 2 > 1", "crux.gpu_utilization > 1", "comparison.crux.x > 1"])
def test_a_damaged_summary_fails_or_passes_a_check_and_never_raises(summary: dict[str, object], text: str) -> None:
    result = parse_check(text).evaluate(summary)
    assert "\n" not in result.detail and not result.passed
