"""``python -m testbed.engines.emulation.namespaces.sandbox_main``: what runs in the namespaces of a run.

The request is on standard input; progress and, at last, the answer are lines of JSON on standard output.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from testbed.engines.emulation.namespaces.handover import MessageWriter, messages_of, read_request
from testbed.engines.emulation.namespaces.watchdog import SHOW_STACKS
from testbed.engines.emulation.session import Session
from testbed.results.record import RunRecord
from topologies.mininet_adapter.system import run_command

SCRATCH = Path("/run/testbed")
"""In a file system of the run's own, laid over ``/run``."""


def main() -> int:
    """Make ``/run`` private, raise the limit of open files, and run the request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.register(SHOW_STACKS)  # to the run's log
    request = sys.stdin.buffer.read()
    os.umask(0o022)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    run_command(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    SCRATCH.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    outside = MessageWriter(sys.stdout.fileno())
    for message in messages_of(_run(request, outside)):
        outside.write(message)
    return 0


def _run(request: bytes, outside: MessageWriter) -> RunRecord | Exception:
    def progress(phase: str, **values: Any) -> None:
        outside.write({"phase": phase, **values})

    try:
        return asyncio.run(Session(read_request(request), SCRATCH, progress).run())
    except Exception as error:
        traceback.print_exc()  # into the run's log
        return error


if __name__ == "__main__":
    raise SystemExit(main())
