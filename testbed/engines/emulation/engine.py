"""The emulation engine, seen from outside: start the sandbox, show progress, take the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from testbed.engines.emulation.external.output import OUTPUT
from testbed.engines.emulation.namespaces.handover import ANSWER, COMMAND, Request, read_answer, request_of
from testbed.engines.emulation.namespaces.sandbox import SANDBOX, only_run_on_this_machine, spawn
from testbed.engines.emulation.namespaces.watchdog import Watchdog
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import AS_GIVEN, ScaleSearch
from testbed.machine.capabilities import require_emulation
from testbed.results.record import RunRecord

FAILED_COMMAND = "failed-command.txt"
"""Beside the log: all of a command that failed, where the log and the error have its first and last words."""
Progress = Callable[[dict[str, Any]], None]


class EmulationEngine:
    """Sends packets: Mininet, Open vSwitch, the Ryu controller and workers, in namespaces of the run's own."""

    name = "emulation"

    def __init__(self, watched: bool = False) -> None:
        """``watched``: runs also tell samples of how they go, as messages of the phase ``live``."""
        self._alone = False
        self._watched = watched

    def check(self) -> None:
        """Raise ``CannotRunError`` naming the first thing this machine lacks."""
        require_emulation()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other emulations away for several runs in a row; ``CannotRunError`` if there is one already."""
        with only_run_on_this_machine():
            self._alone = True
            try:
                yield
            finally:
                self._alone = False

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Progress,
        search: ScaleSearch = AS_GIVEN,
    ) -> RunRecord:
        """Run ``experiment``; logs go to ``directory``, progress messages to ``progress``.

        ``search``: how it comes by its scale.

        Raises ``CannotRunError`` beside another run and ``RunFailedError`` if the run does not end well.
        """
        log = directory / "testbed.log"
        answer: list[dict[str, Any]] = []
        with nullcontext() if self._alone else only_run_on_this_machine():
            request = request_of(Request(experiment, self._watched, search))
            watchdog = Watchdog(spawn(SANDBOX, request, log), log)
            try:
                for message in watchdog.messages():
                    if message["phase"] == ANSWER:
                        answer.append(message)
                    elif message["phase"] == OUTPUT:
                        _append(directory / f"{message['job']}.{message['host']}.log", f"{message['text']}\n")
                    elif message["phase"] == COMMAND:
                        _append(directory / FAILED_COMMAND, message["text"])
                    else:
                        progress(message)
                watchdog.wait()
            finally:
                watchdog.end()
        if not directory.is_dir():
            raise RunFailedError(f"{directory}: this directory was removed meanwhile")
        return read_answer(answer, log)


def _append(path: Path, text: str) -> None:
    """Append what the inside has said, if that can be written."""
    with suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(text)
