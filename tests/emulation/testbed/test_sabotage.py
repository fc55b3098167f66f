"""Whoever disturbs a run is found out: once for each kind of sabotage; ``benchmarks/sabotage.py`` repeats it."""

from __future__ import annotations

import pytest
from emulation_runs import default_datapath

from benchmarks.sabotage import small, trial
from benchmarks.sabotage_kinds import KINDS, NotPossibleError
from topologies.datapath import Datapath

pytestmark = [pytest.mark.emulation, pytest.mark.shares_machine]

BEST = default_datapath()
ALSO_IN_USERSPACE = ("quota", "detour", "short-detour")
"""Kinds that disturb forwarding itself."""
SHORT = small("12s", iterations=16)
"""Sabotage begins 3 s after the set-up and lasts 4 s; some kinds stop a job for good, which then ends at the limit."""
CASES = [(name, BEST) for name, kind in KINDS.items() if BEST in kind.datapaths]
CASES += [(name, "userspace") for name in ALSO_IN_USERSPACE if BEST != "userspace"]


@pytest.mark.parametrize(("name", "datapath"), CASES)
def test_what_was_done_to_a_run_is_named_in_its_verdict(name: str, datapath: Datapath) -> None:
    try:
        done = trial(KINDS[name], document={**SHORT, "datapath": datapath})
    except NotPossibleError as error:
        pytest.skip(str(error))
    assert done.named, (done.verdict, done.findings)
    assert done.verdict != "ok" or name == "hog"  # what neighbours took is replaced while enough remains
