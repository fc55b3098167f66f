"""Muri's efficiencies and groups beside its authors' simulator, on cases of our own.

The numbers are what ``simulator/matching.py`` of github.com/Rivendile/Muri (commit 4e69a78, Apache-2.0) gives for them:
efficiency and order from ``_Packing.calc_used_ratio``, groups from ``_Blossom_Same.run``, its factors on the iteration
time set to 1.
"""

from __future__ import annotations

from typing import Final

import pytest

from workloads.managers.policies.sharing.grouping import Sharer, group_jobs, srsf
from workloads.managers.policies.sharing.interleaving import best_order, group_time, interleaving_efficiency

Times = tuple[int, ...]

EFFICIENCIES: Final[tuple[tuple[tuple[Times, ...], float, tuple[int, ...]], ...]] = (
    (((4, 7, 0, 19), (14, 5, 3, 20)), 0.35294117647058826, (1, 0)),
    (((11, 2, 7, 8), (1, 10, 19, 5)), 0.375, (0, 1)),
    (((17, 13, 1, 18), (0, 18, 8, 9)), 0.3620689655172414, (1, 0)),
    (((13, 6, 5, 3), (18, 16, 18, 1)), 0.3508771929824561, (1, 0)),
    (((10, 19, 10, 8), (5, 12, 9, 20), (16, 4, 8, 8)), 0.6201923076923077, (0, 2, 1)),
    (((5, 13, 1, 10), (17, 1, 13, 8), (16, 9, 16, 13)), 0.5545454545454546, (1, 0, 2)),
    (((12, 5, 9, 18), (11, 12, 18, 0), (9, 18, 19, 17)), 0.578125, (0, 2, 1)),
    (((17, 16, 13, 16), (13, 2, 2, 14), (11, 3, 13, 12)), 0.532258064516129, (0, 1, 2)),
    (((1, 6, 16, 7), (12, 0, 3, 14), (6, 5, 0, 17), (12, 11, 5, 10)), 0.6510416666666666, (0, 3, 1, 2)),
    (((11, 20, 6, 14), (1, 2, 17, 4), (20, 6, 20, 3), (1, 6, 13, 3)), 0.6228813559322034, (0, 1, 3, 2)),
    (((4, 18, 14, 1), (3, 15, 16, 4), (18, 9, 15, 15), (2, 20, 11, 3)), 0.65625, (0, 1, 3, 2)),
    (((19, 8, 3, 0), (5, 16, 11, 20), (2, 10, 3, 5), (20, 19, 13, 8)), 0.6044776119402985, (0, 1, 3, 2)),
    (((3, 1, 2), (1, 4, 1)), 0.5714285714285714, (1, 0)),
    (((3, 1, 2), (1, 4, 1), (2, 2, 5)), 0.7777777777777778, (0, 2, 1)),
    (((9, 1), (2, 8)), 0.9090909090909091, (0, 1)),
)
"""Seconds of each job on each resource; efficiency; order of offsets."""

GROUPS: Final[tuple[tuple[int, tuple[tuple[int, Times], ...], tuple[tuple[int, ...], ...]], ...]] = (
    (
        2,
        (
            (1, (14, 17, 9, 18)),
            (1, (16, 13, 20, 10)),
            (1, (13, 9, 20, 20)),
            (1, (17, 16, 18, 1)),
            (1, (1, 11, 9, 12)),
            (1, (13, 8, 14, 5)),
        ),
        (
            (0, 1, 2, 3),
            (4, 5),
        ),
    ),
    (
        2,
        (
            (1, (1, 7, 15, 13)),
            (1, (3, 3, 17, 12)),
            (1, (8, 1, 17, 20)),
            (1, (13, 8, 0, 13)),
            (1, (0, 0, 13, 10)),
            (1, (9, 2, 3, 18)),
            (1, (3, 13, 12, 14)),
            (1, (8, 19, 13, 5)),
        ),
        (
            (0, 3, 4, 7),
            (1, 2, 5, 6),
        ),
    ),
    (
        5,
        (
            (1, (6, 4, 2, 14)),
            (1, (12, 3, 5, 17)),
            (1, (13, 4, 20, 11)),
            (1, (11, 17, 10, 8)),
            (1, (20, 16, 3, 14)),
            (1, (12, 13, 12, 20)),
            (1, (17, 14, 15, 7)),
            (1, (4, 14, 12, 9)),
        ),
        (
            (0,),
            (1, 4),
            (2, 5),
            (3, 6),
            (7,),
        ),
    ),
    (
        4,
        (
            (1, (7, 8, 20)),
            (1, (5, 9, 2)),
            (1, (5, 4, 6)),
            (1, (9, 6, 0)),
            (1, (10, 0, 20)),
            (1, (12, 0, 18)),
            (1, (1, 19, 5)),
            (1, (6, 4, 4)),
            (1, (10, 15, 11)),
        ),
        (
            (0, 5, 8),
            (1, 3),
            (2, 7),
            (4, 6),
        ),
    ),
    (
        5,
        (
            (1, (12, 20)),
            (1, (8, 4)),
            (1, (18, 19)),
            (1, (16, 16)),
            (1, (1, 13)),
            (1, (19, 11)),
            (1, (6, 15)),
            (1, (6, 15)),
        ),
        (
            (0, 5),
            (1, 4),
            (2, 3),
            (6,),
            (7,),
        ),
    ),
    (
        6,
        (
            (1, (0, 20, 3, 12)),
            (1, (0, 14, 2, 6)),
            (1, (8, 13, 1, 8)),
            (2, (7, 0, 4, 8)),
            (2, (6, 9, 10, 7)),
            (2, (1, 5, 8, 1)),
            (2, (14, 17, 17, 13)),
            (2, (19, 3, 0, 18)),
            (1, (14, 11, 11, 19)),
        ),
        (
            (0, 1, 2, 8),
            (3, 4, 5, 6),
            (7,),
        ),
    ),
    (
        7,
        (
            (2, (17, 11, 1, 10)),
            (1, (14, 16, 4, 9)),
            (1, (11, 9, 10, 9)),
            (1, (10, 9, 3, 17)),
            (1, (11, 4, 19, 10)),
            (2, (1, 1, 6, 15)),
            (2, (4, 2, 16, 15)),
            (2, (19, 17, 18, 16)),
            (2, (0, 4, 3, 16)),
            (1, (13, 19, 12, 0)),
            (1, (16, 5, 14, 13)),
            (2, (7, 14, 7, 2)),
        ),
        (
            (0, 6, 8, 11),
            (1, 10),
            (2, 9),
            (3, 4),
            (5, 7),
        ),
    ),
    (
        10,
        (
            (1, (13, 2, 12, 12)),
            (4, (19, 5, 15, 16)),
            (2, (13, 16, 19, 5)),
            (2, (19, 6, 18, 1)),
            (4, (11, 19, 15, 17)),
            (2, (7, 7, 14, 12)),
            (2, (3, 5, 0, 1)),
            (4, (5, 4, 4, 2)),
            (4, (9, 2, 13, 3)),
            (1, (11, 10, 12, 1)),
            (2, (17, 8, 17, 11)),
            (2, (8, 18, 17, 11)),
        ),
        (
            (0, 9),
            (1, 4, 7, 8),
            (2, 5, 10, 11),
            (3, 6),
        ),
    ),
    (
        8,
        (
            (1, (0, 12, 17, 4)),
            (2, (17, 18, 10, 19)),
            (1, (10, 6, 3, 15)),
            (2, (0, 11, 12, 3)),
            (1, (20, 1, 15, 3)),
            (2, (4, 17, 13, 16)),
            (1, (2, 6, 20, 15)),
            (2, (19, 12, 0, 2)),
            (2, (15, 18, 16, 7)),
            (1, (7, 11, 13, 5)),
            (2, (2, 18, 10, 12)),
            (2, (3, 11, 1, 3)),
            (2, (3, 2, 16, 9)),
            (2, (11, 12, 20, 10)),
            (1, (4, 19, 2, 4)),
            (2, (0, 15, 19, 11)),
        ),
        (
            (0, 2, 6, 9),
            (1, 5, 8, 15),
            (3, 7, 10, 13),
            (4, 14),
            (11, 12),
        ),
    ),
)
"""GPUs; GPUs and seconds on each resource of the jobs, most important first; which jobs share."""


@pytest.mark.parametrize(("stages", "efficiency", "order"), EFFICIENCIES)
def test_a_group_is_as_efficient_as_the_simulator_says(
    stages: tuple[tuple[float, ...], ...], efficiency: float, order: tuple[int, ...]
) -> None:
    assert interleaving_efficiency(stages) == pytest.approx(efficiency, rel=1e-12)
    assert group_time([stages[job] for job in order]) == group_time([stages[job] for job in best_order(stages)])


@pytest.mark.parametrize(("gpus", "jobs", "groups"), GROUPS)
def test_jobs_form_the_groups_of_the_simulator(
    gpus: int, jobs: tuple[tuple[int, tuple[float, ...]], ...], groups: tuple[tuple[int, ...], ...]
) -> None:
    sharers = [
        Sharer(str(number), size, stages, remaining_s=(number + 1) / size) for number, (size, stages) in enumerate(jobs)
    ]
    found = group_jobs(sharers, gpus, srsf)
    assert not found.waiting
    assert sorted(tuple(sorted(int(job.name) for job in group)) for group in found.groups) == list(groups)
