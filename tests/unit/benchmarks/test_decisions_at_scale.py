"""What the benchmark of decisions at scale counts as a change."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from benchmarks.decision_cases import views
from benchmarks.decisions_at_scale import EVENTS, Case, changed_levels, jobs_of, measure_case
from controller.schedulers.registry import create

SMALL = Case(60, 5, 15)


def test_a_job_that_comes_changes_no_level_and_one_without_a_level_has_the_lowest() -> None:
    before, after = {"a": 0, "b": 1, "c": 7}, {"a": 0, "b": 2, "d": 3, "new": 0}
    assert changed_levels(before, after, ["a", "c"]) == 0
    assert changed_levels(before, after, ["a", "b", "c", "d"]) == 2


def test_anew_goes_from_one_best_cut_to_the_next_and_kept_from_levels_in_force_to_the_next() -> None:
    fabric = SMALL.fabric()
    seen = views(create("crux"), fabric, jobs_of(SMALL, fabric))
    view, event = next(seen)
    best = last = create("crux").decide(view, event)
    anew, kept, known = list[int](), list[int](), set(view.jobs)
    for view, event in islice(seen, EVENTS):
        best_before, best = best, create("crux").decide(view, event)
        before, last = last, create("crux").decide(replace(view, decision=last), event)
        anew.append(changed_levels(best_before.levels, best.levels, known & set(view.jobs)))
        kept.append(changed_levels(before.levels, last.levels, known & set(view.jobs)))
        known = set(view.jobs)
    found = measure_case(SMALL)
    assert (found.changed_anew, found.changed_kept) == (sum(anew) / EVENTS, sum(kept) / EVENTS)
    assert sum(anew) > sum(kept)
