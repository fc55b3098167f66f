"""``run --watch``: takes the samples of a run to the page that shows them and to the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import RenderableType

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.watch import terminal
from testbed.watch.messages import LiveSample, read_sample
from testbed.watch.page import watch_page
from testbed.watch.server_process import ServerProcess


class Watcher:
    """Shows runs of one scenario while they go on: those of its schedulers, and their repetitions.

    ``with Watcher() as watcher``: the page is served from the first :meth:`begin` to the end.
    """

    def __init__(self) -> None:
        self._server: ServerProcess | None = None
        self._links: list[str] = []
        self._routes: dict[str, tuple[int, ...]] = {}
        self._sample: LiveSample | None = None
        self._drawn: RenderableType | None = None
        self._going = False

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            if self._going:
                self._server.tell("ended", {"report": None})
            self._server.close()

    @property
    def server(self) -> ServerProcess | None:
        """The process that serves the page, once a run has begun."""
        return self._server

    def begin(self, experiments: tuple[Experiment, ...]) -> None:
        """A run of ``experiments`` is about to begin, one per scheduler; say where the page is."""
        if self._server is None:
            self._links = [link.name for link in experiments[0].fabric.network_links]
            self._server = ServerProcess(watch_page(experiments))
            print(f"watch: {self._server.url}", file=sys.stderr, flush=True)
        self._going = True

    def phase(self, scheduler: str, name: str) -> None:
        """The run under ``scheduler`` enters phase ``name``."""
        assert self._server is not None
        if name == "set up":
            self._sample = self._drawn = None
            self._routes = {}
            self._server.tell("run", {"scheduler": scheduler})
        self._server.tell("phase", {"phase": name})

    def show(self, message: Mapping[str, Any]) -> None:
        """Show the sample in ``message``; ``RunFailedError`` if there is none."""
        assert self._server is not None
        try:
            sample = read_sample(message)
        except ValueError as error:
            raise RunFailedError(f"a sample of the run is not understood ({error})") from error
        if sample.routes is not None:
            self._routes = dict(sample.routes)
            self._server.tell("routes", message["sample"]["routes"])
        self._server.tell("sample", {**message["sample"], "routes": None}, may_be_lost=True)
        self._sample, self._drawn = sample, None

    def ended(self, directory: Path) -> None:
        """The run has ended, its report is in ``directory``."""
        assert self._server is not None
        self._server.tell("ended", {"report": str((directory / "report.html").resolve())})
        self._going = False

    def screen(self) -> RenderableType | None:
        """The last sample for a terminal."""
        if self._drawn is None and self._sample is not None:
            links = terminal.busiest(self._sample, self._links, self._routes, terminal.MOST_LINKS)
            self._drawn = terminal.screen(self._sample, links)
        return self._drawn

    def line(self) -> str:
        """The last sample in one line; empty before the first."""
        if self._sample is None:
            return ""
        links = terminal.busiest(self._sample, self._links, self._routes, terminal.IN_A_LINE)
        return terminal.line(self._sample, links)
