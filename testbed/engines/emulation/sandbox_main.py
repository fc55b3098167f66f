"""``python -m testbed.engines.emulation.sandbox_main REQUEST``: what runs in the namespaces of a run."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from testbed.engines.emulation.handover import read_request, write_answer
from testbed.engines.emulation.session import Session
from testbed.results.record import RunRecord
from topologies.mininet_adapter.system import run_command

SCRATCH = Path("/run/testbed")
"""In a file system of the run's own, laid over ``/run``."""


def main() -> int:
    """Make ``/run`` private, raise the limit of open files, and run the request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_command(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    SCRATCH.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request = Path(sys.argv[1])
    write_answer(request, _run(request))
    return 0


def _run(request: Path) -> RunRecord | Exception:
    experiment, directory = read_request(request)
    try:
        return asyncio.run(Session(experiment, directory, SCRATCH, _tell).run())
    except Exception as error:
        return error


def _tell(phase: str, **values: Any) -> None:
    """A progress message for the outside, a line of JSON on standard output."""
    os.write(1, json.dumps({"phase": phase, **values}).encode() + b"\n")


if __name__ == "__main__":
    raise SystemExit(main())
