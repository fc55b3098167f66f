"""A worker process ends with the engine that it serves, in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_worker_whose_engine_has_ended_ends_without_a_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workloads.worker", str(tmp_path), "h0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
        assert worker.stdout is not None and worker.stderr is not None
        worker.stdout.close()
        said = worker.stderr.read()
    assert (worker.returncode, said) == (0, "")
