"""A pool whose work fails ends at once, and only its caller says why."""

from __future__ import annotations

import subprocess
import sys

FAILING = """
import time
from testbed.reproduce.process_pool import started

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
