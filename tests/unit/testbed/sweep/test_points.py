"""The points of a sweep: their names, what decides them, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import CannotRunError
from testbed.sweep.checking import Resolved, points_of
from testbed.sweep.loading import load, yaml_of
from testbed.sweep.store import Store, pack, unpack
from testbed.sweep.values import LONGEST_NAME, Axis, Sweep, SweepPoint, outcome_of, worst


def test_a_combination_too_large_for_this_machine_is_named(tmp_path: Path) -> None:
    def resolve(scenario: str, overrides: Any, seed: int | None) -> Resolved:
        if "fabric.hosts=9" in overrides:
            raise CannotRunError("the peak is above the budget")
        return Resolved(1, "digest")

    axes = (Axis("fabric.hosts", ("4", "9")), Axis("measure.warmup", ("1", "2")))
    given_ = Sweep("s.yaml", "clos96", axes=axes, lines={"fabric.hosts=9": 5}, set_line=4)
    with pytest.raises(CannotRunError, match=r"^s.yaml:5: with fabric.hosts=9: the peak is above the budget$"):
        points_of(given_, resolve=resolve)


def test_a_scenario_beside_the_sweep_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "hello.yaml").write_text("")
    (tmp_path / "s.yaml").write_text("scenario: hello.yaml\n")
    assert load(str(tmp_path / "s.yaml")).scenario == str(tmp_path / "hello.yaml")
    (tmp_path / "hello.yaml").unlink()
    assert load(str(tmp_path / "s.yaml")).scenario == "hello.yaml"


words = st.text("abc", min_size=1, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(values)
@settings(max_examples=100)
def test_a_value_reads_back_as_the_same_from_its_one_line(value: object) -> None:
    text = yaml_of(value)
    assert yaml.safe_load(text) == value and "\n" not in text


def point(*pairs: tuple[str, str], seed: int = 1) -> SweepPoint:
    return SweepPoint("hello", "flow", (), pairs, seed)


texts = st.text(min_size=1, max_size=60)


@given(st.lists(texts, min_size=2, max_size=5, unique=True), texts)
@settings(max_examples=50)
def test_points_that_differ_have_names_that_differ_and_are_fit_for_folders(values: list[str], other: str) -> None:
    names = {point(("a.b", value), ("c", other)).name for value in values}
    assert len(names) == len(values)
    assert all(len(name) <= LONGEST_NAME and "/" not in name and name.isprintable() for name in names)


def test_a_points_name_does_not_depend_on_the_order_of_the_keys() -> None:
    assert point(("a", "1"), ("b", "2")).name == point(("b", "2"), ("a", "1")).name == "a=1,b=2,seed=1"


def test_a_point_is_the_same_whatever_other_seeds_and_values_the_sweep_has() -> None:
    small = Sweep("s.yaml", "hello", seeds=(2,), axes=(Axis("measure.warmup", ("1",)),))
    large = Sweep("s.yaml", "hello", seeds=(1, 2), axes=(Axis("measure.warmup", ("2", "1")),))
    assert set(points_of(small)) < set(points_of(large))


def test_the_version_and_the_engine_are_part_of_what_decides_a_point() -> None:
    sweeps = [Sweep("s", "hello"), Sweep("s", "hello", engine="flow")]
    prints = {points_of(one, version=version)[0].fingerprint for one in sweeps for version in ("1", "2")}
    assert len(prints) == 4


@pytest.mark.parametrize("damage", ["note", "summary", "unfinished", "list"])
def test_a_damaged_point_is_run_again(damage: str, tmp_path: Path, fake_runner: Any) -> None:
    store, one = Store(tmp_path), point(("a", "1"))
    folder = store.prepare(one)
    outcome = fake_runner()(one, folder)
    store.keep(one, outcome)
    assert store.kept(one) == outcome
    run = folder / outcome.directory
    if damage == "unfinished":
        (run / "UNFINISHED").touch()
    else:
        file = {"note": folder / "point.json", "list": folder / "point.json", "summary": run / "summary.json"}[damage]
        file.write_text("[]" if damage == "list" else "{")
    assert store.kept(one) is None


def test_a_run_made_elsewhere_appears_whole_and_what_was_unfinished_goes(tmp_path: Path, fake_runner: Any) -> None:
    store, one = Store(tmp_path / "here"), point()
    outcome = fake_runner()(one, tmp_path / "there")
    (store.folder(one) / ".unfinished-x").mkdir(parents=True)
    folder = store.prepare(one)
    unpack(pack(tmp_path / "there"), folder)
    store.keep(one, outcome)
    assert store.kept(one) == outcome
    assert sorted(path.name for path in folder.iterdir()) == sorted([outcome.directory, "point.json"])


def test_a_mean_jct_is_of_all_jobs_or_of_none() -> None:
    ecmp, crux = (
        {
            "scheduler": name,
            "gpu_utilization": 0.5,
            "fidelity": {"verdict": "ok"},
            "work_flop": 1,
            "duration_s": 1,
            "jobs": [{"jct_s": 10.0}, {"jct_s": second}],
        }
        for name, second in (("ecmp", None), ("crux", 20.0))
    )
    comparison = {"baseline": "ecmp", "crux": {"gpu_utilization_points": 10.0}}
    first, second = outcome_of({"runs": [ecmp, crux], "comparison": comparison}, "x").results
    assert (first.mean_jct_s, second.mean_jct_s) == (None, 15.0)
    assert (first.points, second.points) == (None, 10.0)


def test_a_failure_weighs_more_than_a_doubt() -> None:
    assert worst({"a": 0, "b": 4, "c": 5}) == 4 and worst({"a": 4, "b": 1}) == 1 and worst({"a": 0}) == 0


@pytest.mark.parametrize("scalar", ["0.5", "20us", "true", "2"])
def test_a_scalar_in_a_sweep_is_a_list_of_one(scalar: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"scenario: hello\nset:\n  jobs.0.overlap: {scalar}\n  seeded: [1, 2]\n")
    alone = load(str(path))
    path.write_text(f"scenario: hello\nset:\n  jobs.0.overlap: [{scalar}]\n  seeded: [1, 2]\n")
    listed = load(str(path))
    assert alone == listed
    assert alone.axes[0] == Axis("jobs.0.overlap", (scalar,))
    assert alone.lines[f"jobs.0.overlap={scalar}"] == 3
