"""``python -m testbed.engine.inside REQUEST``: what runs in the namespaces of a run."""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from topologies.mininet_adapter.system import run_command


def main() -> int:
    """Make ``/run`` private, raise the limit of open files, and run the request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_command(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    from testbed.engine.session import main as run_session

    return run_session(Path(sys.argv[1]))


if __name__ == "__main__":
    raise SystemExit(main())
