"""A pool whose work fails ends at once, and only its caller says why; its processes end with their parent."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

FAILING = """
import time
from testbed.machine.process_pool import started

def task(number):
    time.sleep(0.01)
    if number == 3:
        raise ValueError("the third one")
    return number

with started(2, lambda pool: pool) as pool:
    try:
        list(pool.map(task, range(300)))
    except ValueError as error:
        print(error)
        raise SystemExit(1) from None
"""


def test_work_that_fails_leaves_no_word_of_the_pool_itself() -> None:
    """The race behind it shows in about one of three."""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (1, "the third one\n", "")


KILLED = """
import os, time
from testbed.machine.process_pool import started

def task():
    print(os.getpid(), flush=True)
    time.sleep(600)

with started(1, lambda pool: pool.submit(task)) as work:
    work.result()
"""


def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path("/proc", parent.stdout.readline().strip())
        assert child.exists()
        parent.kill()
    for _ in range(100):
        if not child.exists():
            return
        time.sleep(0.05)
    pytest.fail("it lives on")
