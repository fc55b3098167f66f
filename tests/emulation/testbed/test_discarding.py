"""What was done to a run once may be left out, openly."""

from __future__ import annotations

import pytest

from benchmarks.sabotage import small, trial
from benchmarks.sabotage_kinds import KINDS

pytestmark = pytest.mark.emulation

SHORT = small("12s", iterations=16)


def test_a_worker_stopped_once_can_be_discarded_openly() -> None:
    done = trial(KINDS["stopped-worker"], "--discard-disturbed", document=SHORT)
    assert done.named, (done.verdict, done.findings)
    if not all(finding.startswith(("standstill", "timer", "neighbours")) for finding in done.findings):
        pytest.skip(f"the machine disturbed the run: {done.findings}")
    if done.verdict != "ok" and any(finding.startswith("neighbours") for finding in done.findings):
        pytest.skip(f"neighbours took the CPU as well: {done.findings}")
    assert done.verdict == "ok"
