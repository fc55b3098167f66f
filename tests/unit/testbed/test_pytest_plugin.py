from __future__ import annotations

import json
import sys
from importlib.metadata import entry_points

import pytest

from testbed.metrics.summary import summary

pytest_plugins = ["pytester"]

FAKE_RUNNER = """
import json, pathlib, types
import pytest
from testbed.errors import CannotRunError, RunFailedError

calls = []

@pytest.fixture(scope="session")
def scenario_runner():
    def run_scenario(scenario, *, engine, schedulers, overrides, seed, out):
        calls.append((scenario, engine, schedulers, overrides, seed))
        if scenario == "needs-root.yaml":
            raise CannotRunError("emulation needs root: run with sudo")
        if scenario == "breaks.yaml":
            raise RunFailedError("the controller went away")
        summary = json.loads(pathlib.Path("summary.json").read_text())
        return types.SimpleNamespace(directory=pathlib.Path(out), summary=summary, status=0)
    return run_scenario

@pytest.fixture
def called():
    return calls
"""


@pytest.fixture
def project(pytester, experiment, records):
    """A user's project: tests beside a runner that has the summary ready."""
    pytester.makefile(".json", summary=json.dumps(summary(experiment, records)))
    pytester.makeconftest(FAKE_RUNNER)

    def run(source, *options):
        pytester.makepyfile("import pytest\n" + source)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *_load_plugin(), *options)

    return run


def _load_plugin():
    """Load the plugin by hand only where the package is not installed, so that it is never loaded twice."""
    installed = any(point.value == "testbed.pytest_plugin" for point in entry_points(group="pytest11"))
    return () if installed else ("-p", "testbed.pytest_plugin")


def test_the_numbers_of_a_run_are_attributes(project):
    project(
        """
@pytest.mark.scenario("small.yaml")
def test_it(run):
    assert run.crux.gpu_utilization - run.ecmp.gpu_utilization >= 0.05
    assert run.ecmp.job("big").iteration_s.mean == pytest.approx(1.2)
    assert run["crux"].job("big")["level"] == 0
    assert run.crux.fidelity.verdict == "ok"
    assert run.comparison.crux.jct_change.big < -0.1
    assert run.summary["scenario"] == "small"
    assert run.status == 0
"""
    ).assert_outcomes(passed=1)


def test_equal_arguments_run_once_and_others_again(project):
    project(
        """
@pytest.mark.scenario("small.yaml", set=["seed=2"])
def test_first(run): pass

@pytest.mark.scenario("small.yaml", set=["seed=2"])
def test_second(run): pass

@pytest.mark.scenario("small.yaml", engine="flow", schedulers=["ecmp"], seed=3)
def test_third(run, called):
    assert called == [
        ("small.yaml", "emulation", (), ("seed=2",), None),
        ("small.yaml", "flow", ("ecmp",), (), 3),
    ]
"""
    ).assert_outcomes(passed=3)


def test_a_failing_assert_shows_what_was_measured(project):
    result = project(
        """
@pytest.mark.scenario("small.yaml")
def test_it(run):
    assert run.crux.gpu_utilization > 0.99
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*scenario small.yaml*", "*scheduler*GPU util %*verdict*", "*crux*ok*", "*big*ecmp*1.200*"]
    )


def test_a_passing_test_shows_no_table(project):
    result = project(
        """
@pytest.mark.scenario("small.yaml")
def test_it(run):
    assert run.crux.gpu_utilization > 0.5
"""
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*GPU util*")


def test_a_machine_that_cannot_is_a_skip_with_the_reason(project):
    result = project(
        """
@pytest.mark.scenario("needs-root.yaml")
def test_it(run): assert False
""",
        "-rs",
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*SKIPPED*emulation needs root: run with sudo*"])


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ('@pytest.mark.scenario("needs-root.yaml", required=True)', "*needs-root.yaml: emulation needs root*"),
        ('@pytest.mark.scenario("breaks.yaml")', "*scenario breaks.yaml: the controller went away*"),
        ("", "*needs @pytest.mark.scenario*"),
    ],
)
def test_what_cannot_be_judged_is_an_error_in_one_line(project, marker, reason):
    result = project(f"{marker}\ndef test_it(run): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([reason])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("run.varys", "scheduler 'varys' did not run, these did: ecmp, crux"),
        ('run["varys"]', "scheduler 'varys' did not run, these did: ecmp, crux"),
        ('run.crux.job("gtp")', "no job 'gtp' in crux, there are big, small"),
        ('run.crux.job("big").iteration_s.men', "crux.big.iteration_s has no 'men', it has mean, p50, p99"),
    ],
)
def test_a_wrong_name_says_which_there_are(project, expression, complaint):
    result = project(f'@pytest.mark.scenario("small.yaml")\ndef test_it(run):\n    {expression}\n')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{complaint.replace('[', '[[]')}*"])


def test_without_the_compiler_scenarios_of_the_flow_engine_say_so_before_the_first_test(project, pytester, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    source = '@pytest.mark.scenario("small.yaml", engine="{engine}")\ndef test_it(run):\n    pass\n'
    assert "without numba the flow engine takes" in project(source.format(engine="flow")).stdout.str()
    assert "numba" not in project(source.format(engine="emulation")).stdout.str()
