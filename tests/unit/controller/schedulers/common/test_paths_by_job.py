from __future__ import annotations

from controller.decision import Decision
from controller.schedulers.common.paths_by_job import PathsByJob, paths_of

ONE = {"one/0": ("a->b", "b->c"), "one/1": ("a->c",)}
TWO = {"two/0": ("c->a",)}


def test_paths_kept_by_job_are_a_mapping_of_all_flows() -> None:
    paths = PathsByJob({"one": ONE, "two": TWO})
    assert paths == ONE | TWO and len(paths) == 3 and "two/0" in paths and "two/1" not in paths
    assert list(paths.items()) == [*ONE.items(), *TWO.items()]
    assert Decision(paths=paths) == Decision(paths=ONE | TWO)


def test_the_paths_of_a_job_are_found_however_they_are_kept() -> None:
    assert paths_of(PathsByJob({"one": ONE, "two": TWO}), "one") is ONE
    assert paths_of(PathsByJob({"one": ONE}), "two") == {}
    flat = ONE | TWO
    assert paths_of(flat, "two") is flat
