"""A pytest plugin: run a scenario once and assert on its result.

::

    @pytest.mark.scenario("clos96.yaml", engine="flow", set=["seed=2"])
    def test_crux_helps(run):
        assert run.crux.gpu_utilization - run.ecmp.gpu_utilization >= 0.05
        assert run.ecmp.job("gpt").iteration_s.mean <= 2.1

The scenario runs once per session for the same arguments. A failing test shows the table of what
was measured; a machine that cannot run it skips the test with the reason. ``@pytest.mark.scenario``
takes ``engine``, ``set`` (a list of KEY=VALUE), ``schedulers``, ``seed`` and ``required`` (True
turns the skip into an error). ``--scenario-runs DIR`` keeps the run directories.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from testbed.errors import CannotRunError, TestbedError

ENGINE: Final = "emulation"
Runner = Callable[..., Any]


class SummaryEntry:
    """A part of ``summary.json`` with its keys as attributes: ``entry.iteration_s.mean``."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self._name = name
        self._values = values

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        try:
            value = self._values[key]
        except KeyError:
            raise AttributeError(f"{self._name} has no '{key}', it has {', '.join(self._values)}") from None
        return SummaryEntry(f"{self._name}.{key}", value) if isinstance(value, Mapping) else value

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __repr__(self) -> str:
        return f"<{self._name}>"


class SchedulerRun(SummaryEntry):
    """One scheduler's run: its numbers as attributes, its jobs by :meth:`job`."""

    def job(self, name: str) -> SummaryEntry:
        """The numbers of one job; ``KeyError`` names the jobs there are."""
        jobs = {job["name"]: job for job in self._values["jobs"]}
        if name not in jobs:
            raise KeyError(f"no job '{name}' in {self._name}, there are {', '.join(jobs)}")
        return SummaryEntry(f"{self._name}.{name}", jobs[name])


class ScenarioRun:
    """A finished run: ``run.crux`` or ``run["no-priorities"]`` is a scheduler's, ``run.summary`` the whole document."""

    def __init__(self, summary: Mapping[str, Any], directory: Path, status: int) -> None:
        self.summary = summary
        self.directory = directory
        self.status = status
        self._runs = {run["scheduler"]: SchedulerRun(run["scheduler"], run) for run in summary["runs"]}

    def __getitem__(self, scheduler: str) -> SchedulerRun:
        if scheduler not in self._runs:
            raise KeyError(f"scheduler '{scheduler}' did not run, these did: {', '.join(self._runs)}")
        return self._runs[scheduler]

    def __getattr__(self, scheduler: str) -> SchedulerRun:
        if scheduler.startswith("_"):
            raise AttributeError(scheduler)
        try:
            return self[scheduler]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    @property
    def comparison(self) -> SummaryEntry:
        """The comparison with the baseline: ``run.comparison.crux.gpu_utilization_points``."""
        return SummaryEntry("comparison", self.summary["comparison"])

    def table(self) -> str:
        """What was measured, as text."""
        from testbed.report.tables import doubts, render, tables

        return "\n".join([render(tables(self.summary)), *doubts(self.summary)])


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of a scenario marker; equal ones share a run."""

    scenario: str
    engine: str = ENGINE
    overrides: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    seed: int | None = None


RUNS: Final = pytest.StashKey[dict[RunRequest, ScenarioRun | TestbedError]]()
SHOWN: Final = pytest.StashKey[tuple[str, ScenarioRun]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--scenario-runs``."""
    group = parser.getgroup("testbed", "scenarios of the testbed")
    group.addoption("--scenario-runs", metavar="DIR", type=Path, help="keep the run directories of scenarios here")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "scenario(name, engine='emulation', set=[], schedulers=[], seed=None, required=False): "
        "run a scenario of the testbed once and hand its result to the test as `run`",
    )
    config.stash[RUNS] = {}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Say before the first test if scenarios for the flow engine were collected and it will be slow."""
    markers = [marker for item in session.items if (marker := item.get_closest_marker("scenario"))]
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and any(marker.kwargs.get("engine") == "flow" for marker in markers):
        from testbed.machine.compiler_notice import slow_flow_engine

        if notice := slow_flow_engine("max-min"):
            reporter.write_line(notice)


@pytest.fixture(scope="session")
def scenario_runner() -> Runner:
    """What runs a scenario; override it to run scenarios in another way."""
    from testbed.api import run_scenario

    runner: Runner = run_scenario
    return runner


@pytest.fixture
def run(
    request: pytest.FixtureRequest, scenario_runner: Runner, tmp_path_factory: pytest.TempPathFactory
) -> ScenarioRun:
    """The result of the scenario that the test's ``scenario`` marker names."""
    marker = request.node.get_closest_marker("scenario")
    if marker is None:
        pytest.fail("a test that uses 'run' needs @pytest.mark.scenario(\"NAME.yaml\")", pytrace=False)
    wanted, required = _wanted(*marker.args, **marker.kwargs)
    found = request.config.stash[RUNS]
    if wanted not in found:
        out = request.config.getoption("--scenario-runs") or tmp_path_factory.mktemp("runs")
        found[wanted] = _execute(scenario_runner, wanted, out)
    result = found[wanted]
    if isinstance(result, CannotRunError) and not required:
        pytest.skip(str(result))
    if isinstance(result, TestbedError):
        pytest.fail(f"scenario {wanted.scenario}: {result}", pytrace=False)
    request.node.stash[SHOWN] = (wanted.scenario, result)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what was measured where a test on it failed."""
    report = yield
    shown = item.stash.get(SHOWN, None)
    if shown is not None and report.when == "call" and report.failed:
        scenario, result = shown
        report.sections.append((f"scenario {scenario}", f"{result.table()}\n{result.directory}"))
    return report


def _wanted(
    scenario: str,
    *,
    engine: str = ENGINE,
    set: Sequence[str] = (),
    schedulers: Sequence[str] = (),
    seed: int | None = None,
    required: bool = False,
) -> tuple[RunRequest, bool]:
    return RunRequest(scenario, engine, tuple(set), tuple(schedulers), seed), required


def _execute(runner: Runner, wanted: RunRequest, out: Path) -> ScenarioRun | TestbedError:
    try:
        result = runner(
            wanted.scenario,
            engine=wanted.engine,
            schedulers=wanted.schedulers,
            overrides=wanted.overrides,
            seed=wanted.seed,
            out=out,
        )
    except TestbedError as error:
        return error
    return ScenarioRun(result.summary, result.directory, result.status)
