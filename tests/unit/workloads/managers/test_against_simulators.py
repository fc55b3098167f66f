"""Managers beside the simulators of their authors, on small traces of our own: the ends of jobs that those gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from topologies.clos import clos
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.registry import manager

TIRESIAS: Final = (
    (32, 231, 12397.616, 28293.791),
    (8, 462, 5060.790, 5643.790),
    (32, 556, 12666.794, 31284.161),
    (8, 878, 628.082, 1506.082),
    (4, 1106, 605.143, 1711.143),
    (32, 1381, 1122.184, 29190.975),
    (8, 1685, 2624.029, 4380.029),
    (1, 2004, 1688.554, 3692.554),
    (1, 2034, 1611.312, 3645.312),
    (1, 2341, 5431.011, 7772.011),
    (8, 2566, 3455.161, 6921.967),
    (16, 2685, 8316.149, 14180.149),
    (16, 2687, 3044.086, 12290.244),
    (4, 3022, 9172.301, 12391.107),
    (16, 3064, 5248.057, 16028.761),
    (2, 3452, 7698.572, 11230.704),
    (1, 3467, 2879.758, 6346.758),
    (1, 3672, 6432.562, 10104.563),
    (1, 3706, 22.330, 3728.330),
    (2, 3815, 3128.331, 6943.331),
    (16, 4007, 6985.991, 18826.236),
    (8, 4044, 5289.368, 10189.158),
    (16, 4442, 5607.367, 18842.368),
    (4, 4486, 256.795, 4742.795),
    (32, 4695, 897.260, 29863.235),
    (16, 4821, 74.805, 4895.806),
    (8, 4851, 2959.740, 8186.815),
    (8, 5200, 2978.213, 8799.180),
    (2, 5460, 3492.818, 8952.818),
    (16, 5674, 1942.456, 15672.605),
    (8, 5876, 5.075, 5881.075),
    (32, 6014, 8100.512, 37738.747),
    (2, 6024, 2624.688, 8648.688),
    (16, 6332, 2677.570, 17900.175),
    (2, 6353, 2939.034, 9292.034),
    (1, 6485, 8760.668, 17589.430),
    (8, 6636, 496.132, 7132.132),
    (2, 6682, 6474.076, 13156.076),
    (8, 6689, 6186.171, 12875.171),
    (8, 7007, 3908.460, 11195.275),
)
"""GPUs, submission, duration; and the end under ``dlas-gpu`` of the simulator of Muri (github.com/Rivendile/Muri,
commit 4e69a78, Apache-2.0), its overhead of a restart set to 0: 64 GPUs, queues up to 3,250 and 7,200 GPU-seconds.
Seconds."""


def test_tiresias_ends_every_job_when_the_simulator_does() -> None:
    fabric = clos(hosts=8, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    jobs = [
        Waiting(str(number), gpus, submit_s, duration_s, remaining_s=duration_s)
        for number, (gpus, submit_s, duration_s, _) in enumerate(TIRESIAS)
    ]
    options = {"limits": [3250, 7200], "promote": 0, "whole_seconds": True}
    ended = Play(manager(policy="tiresias", options={"policy": options}), fabric, jobs).run()
    assert [each.end_s for each in ended] == pytest.approx([end_s for *_, end_s in TIRESIAS], abs=0.01)


@pytest.mark.parametrize(
    ("jobs", "ends"),
    [
        (((1, 26, 1105), (4, 41, 1129), (4, 79, 1412), (8, 123, 131)), (1599, 1426, 2376, 909)),
        (
            ((3, 40, 420), (4, 70, 1200), (4, 130, 1100), (4, 150, 1000), (8, 160, 520)),
            (899, 2165, 2402, 2468, 1860),
        ),
        (((8, 55, 308), (2, 156, 746), (2, 274, 241), (8, 358, 1030), (4, 439, 395)), (1212, 1424, 515, 2139, 1293)),
    ],
    ids=["preempted at one moment", "started as another is demoted", "submitted as another is promoted"],
)
def test_tiresias_breaks_ties_as_the_simulator_does(
    jobs: Sequence[tuple[int, int, int]], ends: Sequence[float]
) -> None:
    """GPUs, submission, duration, and ends under ``dlas`` of the simulator of Tiresias (SymbioticLab/Tiresias).

    8 GPUs, one limit of 500 GPU-seconds, PROMOTEKNOB 2.
    """
    fabric = clos(hosts=1, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    waiting = [
        Waiting(str(number), gpus, submit_s, duration_s, remaining_s=duration_s)
        for number, (gpus, submit_s, duration_s) in enumerate(jobs)
    ]
    options = {"limits": [500], "promote": 2, "whole_seconds": True}
    ended = Play(manager(policy="tiresias", options={"policy": options}), fabric, waiting).run()
    assert [each.end_s for each in ended] == pytest.approx(ends)
