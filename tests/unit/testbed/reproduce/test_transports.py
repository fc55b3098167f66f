"""Schedulers on simulated networks: which simulations there are, and what comes of one that cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.errors import EXIT_FAILED, BadInputError
from testbed.progress import Progress
from testbed.reproduce import transports
from testbed.reproduce.experiments import TRANSPORTS
from testbed.reproduce.paper_experiment import Settings
from testbed.reproduce.transports import LOSSY, NETWORKS, SCHEDULERS, Case, reproduce, rows_of, simulated

SMALL = Case("hello", "crux", "dcqcn", 1, 2000.0)


def test_every_scheduler_has_every_network_and_two_rows_are_at_line_rate() -> None:
    rows = rows_of(1)
    assert len(rows) == 4 * len(SCHEDULERS) + 2
    assert [case.network for case in rows["clos96 lossy/crux"]] == list(LOSSY)
    assert [case.network for case in rows["clos96-2to1/crux"]] == list(NETWORKS)
    assert {case.bandwidth for label, row in rows.items() if label.startswith("at line") for case in row} == {1.0}
    assert {*NETWORKS, *LOSSY} <= {column.key for column in TRANSPORTS.columns}


def test_a_simulation_has_a_utilisation_and_what_its_network_did() -> None:
    entry = simulated(SMALL)
    assert not isinstance(entry, str)
    assert 0.5 < entry["gpu_utilization"] <= 1.0
    assert entry["network"]["packets"] > 0


def test_a_row_of_failed_simulations_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cases = (SMALL, replace(SMALL, network="hpcc"))
    monkeypatch.setattr(transports, "rows_of", lambda _seed: {"hello/crux": cases})
    monkeypatch.setattr(transports, "_MEASURE", "measure={iterations: 5, warmup: 1, time_limit: 0.001s}")
    with Progress(quiet=True) as progress:
        (row,) = reproduce(Settings(cases=0, out=tmp_path), progress)
    assert row.status == EXIT_FAILED and "dcqcn: " in row.note and "hpcc: " in row.note


def test_a_row_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with Progress(quiet=True) as progress, pytest.raises(BadInputError, match="--row clos69: no such row"):
        reproduce(Settings(cases=0, only=("clos69",), out=tmp_path), progress)
