"""Points as tasks of a Ray cluster; Ray is an extra and only imported here, when it is asked for.

Nothing is shared but the tasks: a task is given the text of the scenario, and hands back the files of its run. What
the nodes need is this package, in the same version.

An emulation has its machine alone, by two claims. One ``testbed-machine``, a resource of which each node that can
emulate offers one: it keeps a second emulation away whatever the sizes of the nodes, and marks the nodes that have root
and Open vSwitch, which Ray cannot know. And all CPUs of the smallest such node, so that tasks of others are not put
beside it. CPUs alone would not do: on a node twice as large as the smallest, two emulations would fit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from testbed.errors import EXIT_CANNOT, EXIT_FAILED, BadInputError, CannotRunError, RunFailedError
from testbed.machine.distribution import remedy
from testbed.results.plain_names import plain_name
from testbed.scenario.loading import text_of
from testbed.sweep.defaults import LOCAL
from testbed.sweep.running import Work, attempt
from testbed.sweep.store import pack, unpack
from testbed.sweep.values import PointOutcome, Runner, SweepPoint

MACHINE: Final = "testbed-machine"
TICK_S: Final = 1.0
_ONE_TRY: Final = ("RAY_NUM_REDIS_GET_RETRIES", "1")
"""Read when Ray is imported. By itself it tries 20 times, some 8 minutes, to reach a cluster that is not there."""


class RayTasks:
    """``with RayTasks(PointRunner(), "local", version) as execute``: connected to the cluster at ``address`` meanwhile.

    ``address`` as ``ray.init`` takes it; ``local`` starts a cluster on this machine, of ``processes`` CPUs if given.
    ``CannotRunError`` if Ray is not installed, the cluster cannot be reached, or no node takes an emulation.
    """

    def __init__(self, runner: Runner, address: str, version: str, processes: int | None = None) -> None:
        self._runner = runner
        self._address = address
        self._version = version
        self._processes = processes
        if address != LOCAL:
            os.environ.setdefault(*_ONE_TRY)
        self._ray = _import_ray()

    def __enter__(self) -> RayTasks:
        print(f"connecting to Ray ({self._address}) ...", file=sys.stderr, flush=True)
        own = {"num_cpus": self._processes, "resources": {MACHINE: 1}, "include_dashboard": False}
        try:
            self._ray.init(
                self._address,
                log_to_driver=False,
                logging_level="ERROR",
                **({key: value for key, value in own.items() if value is not None} if self._address == LOCAL else {}),
            )
        except Exception as error:  # Ray raises just that when a node does not start
            said = next(iter(str(error).strip().splitlines()), type(error).__name__).strip()
            raise CannotRunError(f"no Ray cluster at '{self._address}' ({said}), expected its address") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ray.shutdown()  # tasks of a driver that has left are ended

    def __call__(self, work: Work) -> Iterator[tuple[SweepPoint, PointOutcome] | None]:
        """Each point with its outcome as it ends, its files in its folder; None about once a second in between."""
        work = list(work)
        task = self._ray.remote(_attempt_there).options(max_retries=0, **self._claim(work))
        pending = {
            task.remote(self._runner, point, *_scenario(point), self._version): (point, folder)
            for point, folder in work
        }
        while pending:
            ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=TICK_S)
            for reference in ready:
                point, folder = pending.pop(reference)
                yield point, self._outcome(reference, folder)
            if not ready:
                yield None

    def _claim(self, work: Work) -> Mapping[str, Any]:
        """What a task takes of its node."""
        if all(point.engine != "emulation" for point, _ in work):
            return {"num_cpus": 1}
        offered = [node["Resources"] for node in self._ray.nodes() if node["Alive"] and MACHINE in node["Resources"]]
        if not offered:
            start = f"ray start --resources='{{\"{MACHINE}\": 1}}'"
            raise CannotRunError(f"no node of the Ray cluster offers {MACHINE}, expected one started with {start}")
        return {"num_cpus": min(node.get("CPU", 1) for node in offered), "resources": {MACHINE: 1}}

    def _outcome(self, reference: Any, folder: Path) -> PointOutcome:
        """What came back, files written; a task that was lost is the failure of its point."""
        try:
            outcome, files = self._ray.get(reference)
            unpack(files, folder)
            if outcome.directory:
                plain_name(outcome.directory, "the directory")
        except (self._ray.exceptions.RayError, RunFailedError, ValueError) as error:
            said = next(iter(str(error).strip().splitlines()), "")
            return PointOutcome(problem=f"{type(error).__name__}: {said}", status=EXIT_FAILED)
        assert isinstance(outcome, PointOutcome)
        return outcome


def _import_ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise CannotRunError(remedy("ray")) from None


def _scenario(point: SweepPoint) -> tuple[str, str]:
    """The name of the scenario's file, and its text."""
    try:
        text, path = text_of(point.scenario)
    except BadInputError as error:
        raise CannotRunError(f"the scenario has gone: {error}") from None
    return Path(path).name, text


def _attempt_there(
    runner: Runner, point: SweepPoint, name: str, text: str, version: str
) -> tuple[PointOutcome, dict[str, bytes]]:
    """On a node: run ``point`` on the scenario of this ``text``; returns the outcome and the run's files."""
    from testbed.machine.distribution import package_version

    here = package_version()
    if here != version:
        return PointOutcome(problem=f"the node has testbed {here!r}, expected {version!r}", status=EXIT_CANNOT), {}
    with tempfile.TemporaryDirectory(prefix="testbed-sweep-") as place:
        scenario, folder = Path(place, name), Path(place, "point")
        scenario.write_text(text, "utf-8")
        folder.mkdir()
        outcome = attempt(runner, replace(point, scenario=str(scenario)), folder)
        return outcome, pack(folder)
