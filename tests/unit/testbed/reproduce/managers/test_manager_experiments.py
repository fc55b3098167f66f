"""Experiments on cluster managers: examples as printed, and every manager with every scheduler on a small trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.colors import to_rgba

from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce import kept_replays
from testbed.reproduce.managers import managers_x_schedulers, tiresias_example
from testbed.reproduce.managers.heat_map import heat_map
from testbed.reproduce.managers.managers_x_schedulers import managers_by_schedulers
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.clos import clos
from workloads.managers.catalogue import MANAGERS, named_manager

SMALL = clos(hosts=8, gpus_per_host=8, nics_per_host=4, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cases=0, seed=1, processes=1, out=tmp_path)


def test_tiresias_example_comes_out_as_printed(settings: Settings) -> None:
    for row in tiresias_example.reproduce(settings, Progress(quiet=True)):
        assert row.here == pytest.approx(row.paper), row.label


def test_every_manager_has_its_parts() -> None:
    for name in MANAGERS:
        assert named_manager(name).policy.name == MANAGERS[name].policy
    with pytest.raises(ValueError, match="unknown manager 'borg', expected one of capacity-scheduler, "):
        named_manager("borg")


def test_managers_are_compared_on_one_trace_and_drawn(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_replays, "FABRICS", {"clos": lambda: SMALL})
    trace = tmp_path / "trace.csv"
    lines = [f"job{number},{60 * number},600,{2 ** (number % 6)}" for number in range(30)]
    trace.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    asked = replace(settings, trace=trace, days=0.2, seeds=2)
    names = ("none", "tiresias", "gandiva", "kubernetes")
    rows = managers_by_schedulers(asked, Progress(quiet=True), names, ("ecmp", "crux"))
    assert [row.label for row in rows] == list(names)
    assert all(0.0 < row.here[name] <= 1.0 for row in rows for name in ("ecmp", "crux"))
    by_name = {row.label: row.here for row in rows}
    assert by_name["gandiva"]["preemptions"] > by_name["none"]["preemptions"] == 0
    assert all({"crux_points", "crux_points_spread", "ecmp_numerical_spread"} <= row.here.keys() for row in rows)
    assert "differences to ecmp exceed their spread" in rows[0].note
    assert (tmp_path / "managers-x-schedulers.svg").is_file()


def test_managers_may_be_chosen_and_an_unknown_one_is_one_line(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        managers_x_schedulers, "managers_by_schedulers", lambda _settings, _progress, names, _schedulers: list(names)
    )
    chosen = replace(settings, only=("hived", "none"))
    assert managers_x_schedulers.reproduce(chosen, Progress(quiet=True)) == ["none", "hived"]
    with pytest.raises(BadInputError, match=r"^--row hivd: no such manager, did you mean 'hived'\?"):
        managers_x_schedulers.reproduce(replace(settings, only=("hivd",)), Progress(quiet=True))


def test_the_heat_map_colours_only_differences_above_their_spread() -> None:
    here = {"ecmp": 0.5, "ecmp_seed_spread": 0.1, "crux": 0.6, "crux_points": 10.0}
    proven = PaperRow("proven", here=here | {"crux_points_spread": 2.0})
    unproven = PaperRow("unproven", here=here | {"crux_points_spread": 11.0})
    axes = heat_map([proven, unproven], ("ecmp", "crux")).axes[0]
    faces = [patch.get_facecolor() for patch in axes.patches]
    assert faces[0] != faces[1] == pytest.approx(to_rgba("#e4e4e4"))
    weights = {text.get_text(): text.get_fontweight() for text in axes.texts}
    assert weights["+10.0\n\N{PLUS-MINUS SIGN} 2.0"] == "bold"
    assert weights["+10.0\n\N{PLUS-MINUS SIGN} 11.0"] == "normal"
    assert "50.0\n\N{PLUS-MINUS SIGN} 10.0" in weights
