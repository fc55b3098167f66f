"""Whoever disturbs a run is found out: once for each kind of sabotage; ``benchmarks/sabotage.py`` repeats it."""

from __future__ import annotations

import pytest

from benchmarks.sabotage import KINDS, NotPossibleError, small, trial

pytestmark = pytest.mark.emulation


@pytest.mark.parametrize("name", KINDS)
def test_what_was_done_to_a_run_is_named_in_its_verdict(name: str) -> None:
    try:
        done = trial(KINDS[name], document=small("30s"))
    except NotPossibleError as error:
        pytest.skip(str(error))
    assert done.named, (done.verdict, done.findings)
    assert done.verdict != "ok" or name == "hog"  # what neighbours took is replaced while enough remains


def test_a_worker_stopped_once_can_be_discarded_openly() -> None:
    done = trial(KINDS["stopped-worker"], "--discard-disturbed", document=small("30s"))
    assert done.named, (done.verdict, done.findings)
    if not all(finding.startswith(("standstill", "timer", "neighbours")) for finding in done.findings):
        pytest.skip(f"the machine disturbed the run: {done.findings}")
    assert done.verdict == "ok"
