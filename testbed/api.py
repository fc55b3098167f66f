"""The testbed from Python: run a scenario, say what a run would do, read finished runs back, compare them.

They are ``testbed.run``, ``plan``, ``load`` and ``compare``; the command line calls the same ones. A session::

    import testbed

    done = testbed.run("hello", engine="flow")
    run = testbed.load(done.directory)
    print(run.summary["comparison"], len(run.records["crux"].iterations))
    print(testbed.compare(done.directory)["runs"])

What is wrong raises an exception of ``testbed.errors``, with the lines that the command line would print.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed import dry_run, input_digests
from testbed.all_runs import AllRuns
from testbed.engines.flow.demand import demands_of
from testbed.engines.registry import Engine, create_engine
from testbed.errors import (
    EXIT_CHECK_FAILED,
    EXIT_NOT_BELIEVABLE,
    EXIT_OK,
    BadInputError,
    CannotRunError,
    RunFailedError,
)
from testbed.experiment.capacity import Capacity, weakest
from testbed.experiment.contention import nothing_to_schedule
from testbed.experiment.demand import Demand
from testbed.experiment.experiment import UNSCALED, Experiment, Managed, Measure, Scale
from testbed.experiment.left_out import left_out_of_files
from testbed.experiment.managed_footprint import measure_all, stand_ins
from testbed.experiment.scale import MANAGED_SHARE, choose_scale, refuse_long_run
from testbed.machine import manifest
from testbed.machine.compiler_notice import slow_engine
from testbed.machine.datapaths import ALWAYS, DatapathChoice
from testbed.metrics.checks import CheckResult, parse_check
from testbed.metrics.comparison import side_by_side as runs_side_by_side
from testbed.metrics.summary import summary as summarise
from testbed.needs import datapaths_of, require_machine
from testbed.one_scale import OneScale
from testbed.progress import Progress
from testbed.report import html, runs_index
from testbed.report.comparison.compared_runs import collect
from testbed.report.no_effect import without_effect
from testbed.results.finished_run import FinishedRun, read_run
from testbed.results.record import RunRecord
from testbed.results.run_directory import MANIFEST, RunDirectory
from testbed.scenario import Scenario, build_fabric, build_jobs, build_managed
from testbed.scenario import load as load_scenario
from testbed.scenario.network.engines import (
    balanced,
    congestion_of,
    ignored_network,
    load_balancing_of,
    network_of,
    refuse_programs,
)
from testbed.scenario.network.failures import failures_of
from topologies.fabric import Fabric
from workloads.job import Job
from workloads.plugin_errors import PluginError

if TYPE_CHECKING:
    from testbed.watch.watcher import Watcher

RUNS: Final = Path("runs")


@dataclass(frozen=True)
class RunResult:
    """Where a run's files are, what it found, and the exit status that follows from it."""

    directory: Path
    summary: dict[str, Any]
    status: int
    checks: tuple[CheckResult, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A scenario resolved to values: one experiment per scheduler, the first is the baseline.

    ``jobs`` of a scenario with a manager are each on GPUs that lie together, not where the manager will have them.
    ``datapaths``: scheduler's label -> what forwards the packets of its run, none in the flow engine; ``capacity`` is
    the estimate for the weakest of them. ``rehearsed``: the scale is an estimate too, which a rehearsal replaces.
    """

    scenario: Scenario
    fabric: Fabric
    jobs: tuple[Job, ...]
    experiments: tuple[Experiment, ...]
    capacity: Capacity
    rehearsed: bool
    datapaths: Mapping[str, DatapathChoice]


def prepare(
    scenario: str | Path,
    *,
    engine: str = "emulation",
    schedulers: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    datapath: str | None = None,
    scale_of: str | Path | None = None,
) -> Prepared:
    """Load, build and place ``scenario``; raises ``BadInputError`` with every line that is wrong.

    ``scale_of``: directory of a finished emulation whose scale is taken.
    ``RunFailedError`` if a plug-in fails, ``CannotRunError`` where no ``auto`` scale does. The flow engine scales
    nothing; a simulation of what an emulation sends has the scale of one on this machine, others that of the line. A
    datapath that is missing here is only noted: see ``testbed.needs``.
    """
    loaded = load_scenario(scenario, _changes(overrides, schedulers, seed, datapath))
    fabric, placed, managed = _built(loaded)
    jobs = placed if managed is None else stand_ins(managed, fabric)
    measure = loaded.measure.value() if managed is None else measure_all(loaded.measure.value(), managed)
    emulated = engine == "emulation"
    network = network_of(loaded, engine)
    if not emulated:
        refuse_programs(loaded, jobs)
    unscaled = not emulated and (network is None or not network.as_emulated)
    balancing = {choice.label: load_balancing_of(loaded, choice, engine) for choice in loaded.choices}
    datapaths = {} if unscaled else datapaths_of(loaded, balancing)
    capacity = weakest([each.datapath for each in datapaths.values()] or [ALWAYS])
    given = _given_scale(loaded, scale_of)
    scale = UNSCALED if network is None or given is None else given
    if not unscaled:
        scale = given or choose_scale(fabric, jobs, capacity.part(1.0 if managed is None else MANAGED_SHARE))
    if not emulated:
        datapaths = {}  # simulated packets have the scale that they would have there
    elif given is None:
        refuse_long_run(fabric, jobs, measure, scale)
    common = _common(loaded, fabric, placed, managed, measure, scale)
    common = replace(common, congestion=congestion_of(loaded, engine, jobs))
    experiments = tuple(
        replace(
            common,
            scheduler=choice,
            network=balanced(network, balancing[choice.label]),
            load_balancing=balancing[choice.label],
            datapath=datapaths[choice.label].datapath if datapaths else ALWAYS,
        )
        for choice in loaded.choices
    )
    return Prepared(loaded, fabric, jobs, experiments, capacity, emulated and given is None, datapaths)


def _common(
    scenario: Scenario, fabric: Fabric, jobs: tuple[Job, ...], managed: Managed | None, measure: Measure, scale: Scale
) -> Experiment:
    """What the experiments of all schedulers have in common."""
    return Experiment(
        name=scenario.name,
        fabric=fabric,
        jobs=jobs,
        scheduler=scenario.choices[0],
        measure=measure,
        scale=scale,
        levels=scenario.levels,
        seed=scenario.seed,
        failures=failures_of(scenario.failures, fabric, measure.time_limit_s, scenario.seed),
        recovery=scenario.recovery.value(),
        managed=managed,
        sharing=scenario.sharing,
        build=scenario.build,
        flowlet_gap_s=scenario.network.flowlet_gap,
    )


def _built(scenario: Scenario) -> tuple[Fabric, tuple[Job, ...], Managed | None]:
    """Its fabric, and its jobs or those that a manager places."""
    try:
        fabric = build_fabric(scenario)
        return fabric, build_jobs(scenario, fabric), build_managed(scenario, fabric)
    except PluginError as error:
        raise RunFailedError(str(error)) from error


def _given_scale(scenario: Scenario, directory: str | Path | None) -> Scale | None:
    """The scale of the run in ``directory``, or that of the scenario; ``BadInputError`` if that run sent no packets."""
    if directory is None:
        return None if scenario.scale is None else scenario.scale.value()
    run = read_run(Path(directory))
    if run.summary["engine"] != "emulation":
        what = run.summary["engine"]
        raise BadInputError(f"{directory}: this is a run of the engine {what}, expected one of an emulation")
    return run.experiment.scale


def _changes(
    overrides: Sequence[str], schedulers: Sequence[str], seed: int | None, datapath: str | None
) -> tuple[str, ...]:
    """All that replaces values of the scenario, as overrides; what is given by its own option comes last and wins."""
    own = {"schedulers": f"[{', '.join(schedulers)}]" if schedulers else None, "seed": seed, "datapath": datapath}
    return (*overrides, *(f"{key}={value}" for key, value in own.items() if value is not None))


def plan(
    scenario: str | Path,
    *,
    engine: str = "emulation",
    schedulers: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    datapath: str | None = None,
) -> dict[str, Any]:
    """Return what a run of ``scenario`` would do: fabric, jobs alone, decisions, scale, estimated time; JSON-ready.

    The flow engine has no estimate and no scale: ``None``. Raises what ``prepare`` does, and ``RunFailedError`` where a
    scheduler fails.
    """
    prepared = prepare(
        scenario, engine=engine, schedulers=schedulers, overrides=overrides, seed=seed, datapath=datapath
    )
    return dry_run.plan(prepared.experiments, prepared.capacity, prepared.rehearsed, prepared.datapaths, engine)


def load(directory: str | Path) -> FinishedRun:
    """Return the finished run in ``directory``: its summary, its manifest, and the records of its schedulers.

    Raises ``BadInputError`` for a directory without a finished run, or with a damaged file.
    """
    return read_run(Path(directory))


def compare(*directories: str | Path) -> dict[str, Any]:
    """Return finished runs side by side, JSON-ready: a row per scheduler of each, and means over runs of one scenario.

    Only runs with the same inputs are averaged; ``remarks`` say what differs. A directory may be that of a sweep.
    Raises ``BadInputError`` with a line for each directory that cannot be read, or if there is none.
    """
    if not directories:
        raise BadInputError("nothing to compare, expected directories of finished runs")
    runs = collect([Path(directory) for directory in directories]).runs
    return runs_side_by_side({run.label: run.summary for run in runs}, {run.label: run.inputs for run in runs})


def run_scenario(
    scenario: str | Path,
    *,
    engine: str = "emulation",
    schedulers: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    datapath: str | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
    allow_degraded: bool = False,
    discard_disturbed: bool = False,
    watcher: Watcher | None = None,
    index: bool = True,
    scale_of: str | Path | None = None,
    beside: Sequence[Experiment] = (),
) -> RunResult:
    """Run every scheduler of ``scenario``, one after the other, and write the run's directory under ``out``.

    ``discard_disturbed``: iterations that a fault limited in time touched are left out, listed and replaced.
    ``watcher`` shows how an emulation goes. ``index``: also list the run in ``index.html`` of that folder.
    ``scale_of``: directory of a finished emulation whose scale is taken. ``beside``: other experiments that the scale
    is to do for, if it is measured.

    Raises ``BadInputError``, ``CannotRunError`` or ``RunFailedError``, which leaves the directory, marked unfinished.
    """
    prepared = prepare(
        scenario,
        engine=engine,
        schedulers=schedulers,
        overrides=overrides,
        seed=seed,
        datapath=datapath,
        scale_of=scale_of,
    )
    if discard_disturbed:
        prepared = _discarding(prepared)
    chosen = create_engine(engine) if watcher is None else create_engine(engine, watched=True)
    _require(chosen, prepared, str(scenario))
    parent = RUNS if out is None else Path(out)
    if watcher is not None:
        watcher.begin(prepared.experiments)
    with chosen.alone(), Progress(quiet, view=watcher) as progress, _create(prepared, parent, scale_of) as directory:
        say_first(prepared, engine, progress)
        runs = OneScale(chosen, _demands(prepared, beside, progress), progress.remark)
        reasons = {label: choice.reason for label, choice in prepared.datapaths.items()}
        of_all = AllRuns(runs, prepared.experiments, prepared.jobs, reasons, progress, watcher)
        first, records = of_all.run(directory)
        _put_scale_on_record(directory, first, runs)
        progress.phase("report")
        document = summarise(first, records)
        checks = _complete(document, records, prepared.scenario)
        directory.write_summary(document)
        html.write(directory, document, records, first)
        directory.finish()
    if watcher is not None:
        watcher.ended(directory.path)
    if index:
        runs_index.update_or_say(parent)
    return RunResult(directory.path, document, _status(records, checks, allow_degraded), checks)


def _complete(document: dict[str, Any], records: Sequence[RunRecord], scenario: Scenario) -> tuple[CheckResult, ...]:
    """Put into ``document`` what made no difference, and how the checks of ``scenario`` come out; return the latter."""
    ignored = ignored_network(scenario, records[0].engine) if records else ""
    document["no_effect"] = without_effect(document, records, ignored)
    checks = tuple(parse_check(text).evaluate(document) for text in scenario.checks)
    document["checks"] = [{"check": check.text, "passed": check.passed, "detail": check.detail} for check in checks]
    return checks


def say_first(prepared: Prepared, engine: str, progress: Progress) -> None:
    """Say what should be known before the runs."""
    first = prepared.experiments[0]
    progress.remark(slow_engine(engine, prepared.scenario.sharing))
    progress.remark(nothing_to_schedule(first.jobs, prepared.fabric))
    progress.remark(ignored_network(prepared.scenario, engine))
    for line in left_out_of_files(first.jobs, first.managed):
        progress.remark(line)


def _demands(prepared: Prepared, beside: Sequence[Experiment], progress: Progress) -> tuple[Demand, ...]:
    """What each run will send, and each of those ``beside``, where the scale is to be measured; none otherwise."""
    if not prepared.rehearsed:
        return ()
    progress.phase("what will be sent")
    return demands_of([*prepared.experiments, *beside])


def _require(engine: Engine, prepared: Prepared, scenario: str) -> None:
    """Raise ``CannotRunError`` where this machine lacks what ``engine`` needs; what works here at once comes first."""
    try:
        engine.check()
    except CannotRunError as error:
        raise CannotRunError(f"{without_packets(scenario, prepared.jobs)}{error}") from error
    require_machine(prepared.datapaths.values(), prepared.experiments)


def without_packets(scenario: str, jobs: Sequence[Job]) -> str:
    """Return how ``scenario`` runs where no packets can be sent, to be followed by why; empty with real programs."""
    if any(job.external is not None for job in jobs):
        return ""
    return f"'testbed run {shlex.quote(scenario)} --engine flow' works here (it sends no packets); with packets: "


def _discarding(prepared: Prepared) -> Prepared:
    """The same, with the iterations left out that a fault limited in time touches."""
    experiments = tuple(replace(e, measure=replace(e.measure, discard_disturbed=True)) for e in prepared.experiments)
    return replace(prepared, experiments=experiments)


def _create(prepared: Prepared, parent: Path, scale_of: str | Path | None) -> RunDirectory:
    scenario, scale = prepared.scenario, prepared.experiments[0].scale
    try:
        directory = RunDirectory.create(parent, scenario.name)
    except RunFailedError as error:
        raise BadInputError(f"{error}, expected a directory to write to") from None
    text = scenario.resolved_yaml()
    directory.write_manifest(
        manifest.collect(
            command=sys.argv,
            seed=scenario.seed,
            scenario_yaml=text,
            scale={"bandwidth": scale.bandwidth, "time": scale.time, "mtu": prepared.experiments[0].mtu},
            extra={
                input_digests.KEY: input_digests.digests_of(scenario, prepared.experiments[0].managed),
                "datapaths": _documents(prepared.datapaths),
                **({} if scale_of is None else {"scale_of": str(scale_of)}),
            },
        )
    )
    directory.write_scenario(text)
    directory.write_experiment(prepared.experiments[0])
    return directory


def _put_scale_on_record(directory: RunDirectory, experiment: Experiment, runs: OneScale) -> None:
    """Write the scale that was measured, and what chose it, where the estimate stood."""
    if runs.measured:
        directory.write_experiment(experiment)
        manifest_before = directory.read_json(MANIFEST)
        directory.write_manifest({**manifest_before, "scale": asdict(experiment.scale), **runs.evidence})


def _documents(datapaths: Mapping[str, DatapathChoice]) -> dict[str, dict[str, str]]:
    return {name: {"datapath": each.datapath, "reason": each.reason} for name, each in datapaths.items()}


def _status(records: Sequence[RunRecord], checks: Sequence[CheckResult], allow_degraded: bool) -> int:
    if any(record.fidelity.verdict != "ok" for record in records) and not allow_degraded:
        return EXIT_NOT_BELIEVABLE
    return EXIT_OK if all(check.passed for check in checks) else EXIT_CHECK_FAILED
