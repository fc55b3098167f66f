"""Experiments on cluster managers: examples as printed, and every manager with every scheduler on a small trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.progress import Progress
from testbed.reproduce.experiment import Settings
from testbed.reproduce.experiments import tiresias_example
from testbed.reproduce.traces import cells
from testbed.reproduce.traces.managers import managers_by_schedulers
from topologies.clos import clos
from workloads.managers.named import MANAGERS, named_manager

SMALL = clos(hosts=8, gpus_per_host=8, nics_per_host=4, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cases=0, seed=1, processes=1, out=tmp_path)


def test_tiresias_example_comes_out_as_printed(settings: Settings) -> None:
    for row in tiresias_example.run(settings, Progress(quiet=True)):
        assert row.here == pytest.approx(row.paper), row.label


def test_every_manager_has_its_parts() -> None:
    for name in MANAGERS:
        assert named_manager(name).policy.name == MANAGERS[name].policy
    with pytest.raises(ValueError, match="unknown manager 'borg', expected one of: consolidated, fair, fifo"):
        named_manager("borg")


def test_managers_are_compared_on_one_trace_and_drawn(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "FABRICS", {"clos": lambda: SMALL})
    trace = tmp_path / "trace.csv"
    lines = [f"job{number},{60 * number},600,{2 ** (number % 6)}" for number in range(30)]
    trace.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    asked = replace(settings, trace=trace, days=0.2)
    names = ("none", "tiresias", "gandiva", "kubernetes")
    rows = managers_by_schedulers(asked, Progress(quiet=True), names, ("ecmp", "crux"), 1.0)
    assert [row.label for row in rows] == list(names)
    assert all(0.0 < row.here[name] <= 1.0 for row in rows for name in ("ecmp", "crux"))
    by_name = {row.label: row.here for row in rows}
    assert by_name["gandiva"]["preemptions"] > by_name["none"]["preemptions"] == 0
    assert (tmp_path / "managers-x-schedulers.svg").is_file()
