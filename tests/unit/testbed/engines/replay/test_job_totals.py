from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.replay.job_totals import HeldGpus, JobTotals

NAMES = st.integers(0, 40).map(str)
STEPS = st.lists(st.tuples(NAMES, st.none() | st.tuples(st.integers(-9, 9), st.integers(-9, 9))), max_size=120)


@given(STEPS)
def test_the_total_is_the_sum_of_the_rows_there_are(steps: list[tuple[str, tuple[int, int] | None]]) -> None:
    columns, known = JobTotals(2), dict[str, tuple[int, int]]()
    for name, values in steps:
        if values is None:
            columns.remove(name)
            known.pop(name, None)
        else:
            columns.put(name, np.array(values, float))
            known[name] = values
        assert columns.total().tolist() == [sum(each[place] for each in known.values()) for place in (0, 1)]


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), max_size=12), st.data())
def test_a_gpu_is_held_as_long_as_any_job_holds_it(jobs: list[list[str]], data: st.DataObject) -> None:
    held = HeldGpus()
    for gpus in jobs:
        held.take(gpus)
    for gpus in data.draw(st.permutations(jobs)):
        assert len(held) == len({gpu for each in jobs for gpu in each})
        held.give_back(gpus)
        jobs.remove(gpus)
    assert len(held) == 0
