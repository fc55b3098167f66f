"""What ``run --watch`` costs: CPU time of all that it adds, per second of the run, while a page and a terminal look on.

Counted from the first sample of a scheduler's run to its last, and never too little: all of the command's own CPU time
(which waits otherwise), all of the server's, and what the run spent on samples. A browser is not counted: it can be on
another machine.
"""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.common import Line, Outcome, main, say
from testbed.errors import EXIT_CHECK_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK, RunFailedError
from testbed.results.run_directory import RunDirectory

TITLE: Final = "run --watch: CPU time of a core that it adds, with a terminal and a page that listens"
MOST: Final = 0.02
START_S: Final = 60.0
_ADDRESS: Final = re.compile(r"watch: (http://\S+)")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass
class Spent:
    """CPU seconds of the command and of the server, between two moments."""

    begin_s: float
    end_s: float = 0.0
    command_s: float = 0.0
    server_s: float = 0.0
    samples: int = 0


@dataclass
class Terminal:
    """A run in a terminal of its own: what it writes is read, so that it never waits."""

    arguments: Sequence[str]
    text: str = ""
    process: Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._own, theirs = pty.openpty()
        command = [sys.executable, "-m", "testbed", "run", *self.arguments]
        self.process = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=theirs, close_fds=True)
        os.close(theirs)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while data := os.read(self._own, 1 << 16):
                self.text += data.decode("utf-8", "replace")
        except OSError:  # the terminal is gone when its last process is
            return

    def address(self) -> str:
        """Where the page is; ``RunFailedError`` if the command does not say so."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := _ADDRESS.search(self.text):
                return found[1]
            time.sleep(0.05)
        raise RunFailedError(f"run --watch told no address: {self.text[-500:]}")


def events(url: str) -> Iterator[tuple[str, Any]]:
    """The events of the page at ``url`` until the server ends."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc)
    connection.request("GET", f"{address.path}/events")
    answer = connection.getresponse()
    while line := answer.readline().decode():
        yield line[7:].strip(), json.loads(answer.readline()[6:])
        answer.readline()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def server_of(pid: int) -> int:
    """The process id of the server that the command ``pid`` started."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"testbed.watch.server" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise RunFailedError("run --watch has no server")


def watched(terminal: Terminal) -> dict[str, Spent]:
    """Scheduler -> what was spent from the first to the last sample of its run."""
    url, command = terminal.address(), terminal.process.pid
    server = server_of(command)
    found: dict[str, Spent] = {}
    scheduler, begin = "", (0.0, 0.0)
    for name, value in events(url):
        if name == "run":
            scheduler = value["scheduler"]
        elif name == "sample":
            now = (cpu_s(command), cpu_s(server))
            if scheduler not in found:
                found[scheduler], begin = Spent(time.monotonic()), now
            spent = found[scheduler]
            spent.end_s, spent.samples = time.monotonic(), spent.samples + 1
            spent.command_s, spent.server_s = now[0] - begin[0], now[1] - begin[1]
    return found


def cost_of(scenario: str, *arguments: str) -> list[Line]:
    """A line per scheduler of ``scenario``."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        say(f"{scenario}: running")
        terminal = Terminal([scenario, *arguments, "--watch", "--out", folder])
        try:
            spent = watched(terminal)
            status = terminal.process.wait()
        finally:
            terminal.process.kill()
            terminal.process.wait()
        if status not in (EXIT_OK, EXIT_NOT_BELIEVABLE, EXIT_CHECK_FAILED):
            raise RunFailedError(f"{scenario} ended with status {status}: {terminal.text[-500:]!r}")
        directory = RunDirectory.open(next(path for path in Path(folder).iterdir() if path.is_dir()))
        return [_line(scenario, name, spent[name], directory) for name in directory.schedulers() if name in spent]


def _line(scenario: str, scheduler: str, spent: Spent, directory: RunDirectory) -> Line:
    record = directory.read_record(scheduler)
    watched_s = spent.end_s - spent.begin_s
    sampling_s = float(str(record.environment["watch_cpu_s"]))
    share = (spent.command_s + spent.server_s + sampling_s) / watched_s
    verdict = record.fidelity.verdict
    outcome: Outcome = "missed" if share > MOST else "pass" if verdict == "ok" else "inconclusive"
    columns = {
        "scenario": scenario,
        "scheduler": scheduler,
        "watched s": round(watched_s, 1),
        "samples": spent.samples,
        "samples, ms/s": round(1000 * sampling_s / watched_s, 2),
        "command, ms/s": round(1000 * spent.command_s / watched_s, 2),
        "server, ms/s": round(1000 * spent.server_s / watched_s, 2),
        "of a core": f"{100 * share:.2f} %",
        "verdict": verdict,
    }
    return Line(columns, f"{MOST:.0%}, ok", outcome, "; ".join(record.fidelity.reasons))


def measure(quick: bool) -> list[Line]:
    """``hello``, 20 s a scheduler; then ``clos96``. ``quick`` leaves that out."""
    longer = ("--set", "measure.iterations=40", "--set", "measure.time_limit=60s")
    lines = cost_of("hello", *longer)
    return lines if quick else [*lines, *cost_of("clos96")]


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
