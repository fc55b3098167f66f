"""What happens to a run in the middle ends it soon, in one line, or is in its verdict, and nothing is left.

``benchmarks/faults.py`` has all faults; here is one of each class.
"""

from __future__ import annotations

import pytest

from benchmarks.fault_kinds import FAULTS
from benchmarks.faults import problems, trial

pytestmark = [pytest.mark.emulation, pytest.mark.shares_machine]

ONE_OF_EACH = (
    "first process stopped",
    "ovsdb-server killed",
    "controller stopped",
    "worker stopped",
    "link between switches down",
    "link removed",
    "directory removed",
    "SIGTERM",
)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_fault_ends_a_run_soon_and_in_one_line_or_is_in_its_verdict(name: str) -> None:
    made = trial(FAULTS[name])
    assert problems(FAULTS[name], made) == [], made
