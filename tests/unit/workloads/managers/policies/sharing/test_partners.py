"""Which running job another one joins: the draw is fair, the same for a seed, and does not look at each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.managers.jobs import Running, Waiting
from workloads.managers.policies.sharing import partners
from workloads.managers.policies.sharing.interleaving import worth_sharing
from workloads.managers.policies.sharing.partners import Partners, gains

Point = tuple[float, float]
SECONDS = st.floats(0, 10) | st.integers(0, 4).map(float)
POINTS = st.tuples(SECONDS, SECONDS)
OVERHEADS = st.sampled_from([1.0, 1.1, 1.5, 1.9, 2.0, 2.5]) | st.floats(1, 3)


def running(points: Sequence[Point]) -> list[Running]:
    return [
        Running(Waiting(f"r{number}", 1, compute_s=c, communication_s=n), ("g",), 0.0)
        for number, (c, n) in enumerate(points)
    ]


def waiting(points: Sequence[Point], apart_from: Sequence[tuple[str, ...]] = ()) -> list[Waiting]:
    apart = [*apart_from, *((),) * len(points)]
    return [
        Waiting(f"w{number}", 1, compute_s=c, communication_s=n, apart_from=apart[number])
        for number, (c, n) in enumerate(points)
    ]


def suiting(left: Sequence[Running], job: Waiting, overhead: float, *, apart: bool = False) -> list[Running]:
    """The slow rule: each of them is looked at, kind by kind as kinds appear."""
    kinds: dict[Point, list[Running]] = {}
    for each in left:
        kinds.setdefault((each.job.compute_s, each.job.communication_s), []).append(each)
    mine = (job.compute_s, job.communication_s)
    worth = [kind for kind in kinds if any(kind) and any(mine) and worth_sharing([kind, mine], (1.0, overhead))]
    return [each for kind in worth for each in kinds[kind] if apart or each.name not in job.apart_from]


def drawn_slowly(left: list[Running], job: Waiting, seed: int) -> Running | None:
    found = suiting(left, job, 1.0, apart=True)
    if not found:
        return None
    first = Random(f"{seed}|{job.name}").randrange(len(found))
    in_turn = [*found[first:], *found[:first]]
    return next((each for each in in_turn if each.name not in job.apart_from), None)


@given(one=POINTS, other=POINTS, overhead=OVERHEADS)
def test_a_pair_gains_if_it_interleaves_faster_than_in_turn(one: Point, other: Point, overhead: float) -> None:
    known = any(one) and any(other)
    assert gains(one, other, overhead) == (known and worth_sharing([one, other], (1.0, overhead)))


APART = st.lists(st.lists(st.integers(0, 5), max_size=3).map(lambda found: tuple(f"r{n}" for n in found)), max_size=6)


@given(there=st.lists(POINTS, max_size=12), asking=st.lists(POINTS, max_size=8), apart=APART, seed=st.integers(0, 9))
def test_without_an_overhead_the_draw_is_that_of_the_rule_that_looks_at_each_job(
    there: list[Point], asking: list[Point], apart: list[tuple[str, ...]], seed: int
) -> None:
    there = sorted(
        there, key=there.index
    )  # jobs alike side by side, so that one taken away leaves the order of the others
    left = running(there)
    found = Partners(left, 1.0, seed)
    for job in waiting(asking, apart):
        expected = drawn_slowly(left, job, seed)
        assert found.take(job) is expected
        left = [each for each in left if each is not expected]


@given(there=st.lists(POINTS, max_size=40), asking=st.lists(POINTS, max_size=20), apart=APART, overhead=OVERHEADS)
@settings(deadline=None)
def test_a_job_joins_one_that_it_gains_with_and_finds_one_whenever_there_is_one(
    there: list[Point], asking: list[Point], apart: list[tuple[str, ...]], overhead: float
) -> None:
    left = running(there)
    found, again = Partners(left, overhead, 1), Partners(left, overhead, 1)
    for job in waiting(asking, apart):
        suits = suiting(left, job, overhead)
        partner = found.take(job)
        assert partner is again.take(job)
        assert (partner in suits) if suits else (partner is None)
        left = [each for each in left if each is not partner]


def test_each_partner_that_suits_has_the_same_chance() -> None:
    random = Random(1)
    there = running([(random.random(), random.random()) for _ in range(60)])
    (job,) = waiting([(0.9, 0.2)])
    suits = [each.name for each in suiting(there, job, 1.7)]
    assert 5 <= len(suits) <= 30  # most draws go through several boxes
    drawn = Counter(partner.name for seed in range(4000) if (partner := Partners(there, 1.7, seed).take(job)))
    assert set(drawn) == set(suits)
    assert all(0.7 < drawn[name] * len(suits) / 4000 < 1.3 for name in suits)


KINDS: dict[str, tuple[float, Callable[[Random], Point]]] = {
    "all gain": (1.0, lambda random: (random.random(), random.random())),
    "many gain": (1.3, lambda random: (random.random(), random.random())),
    "few gain": (1.9, lambda random: (random.random(), random.random())),
    "none gains": (1.9, lambda random: (random.uniform(1, 2), random.uniform(0.01, 0.02))),
    "iterations of a second": (1.7, lambda random: (second := random.random(), 1 - second)),
    "kinds of a catalogue": (1.5, lambda random: (random.choice((1.0, 2.0, 3.0)), random.choice((1.0, 2.0, 3.0)))),
    "all alike, none gains": (1.9, lambda random: (1.0, 0.1)),
}


@pytest.mark.parametrize("kinds", KINDS)
def test_four_times_the_jobs_take_at_most_six_times_the_comparisons(
    kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overhead, kind = KINDS[kinds]

    def comparisons(jobs: int) -> int:
        random, compared = Random(1), list[Point]()

        def counted(one: Point, other: Point, overhead: float) -> bool:
            compared.append(one)
            return gains(one, other, overhead)

        there = running([kind(random) for _ in range(jobs)])
        asking = waiting([kind(random) for _ in range(jobs)])
        with monkeypatch.context() as patched:
            patched.setattr(partners, "gains", counted)
            found = Partners(there, overhead, 1)
            for job in asking:
                found.take(job)
        return len(compared)

    few, many = comparisons(400), comparisons(1600)
    assert few <= 400 * 40 and many <= 6 * few


def test_a_job_never_joins_one_that_it_was_separated_from() -> None:
    there = running([(1.0, 0.1), (1.0, 0.1)])
    (job,) = waiting([(0.1, 1.0)], [("r0",)])
    for seed in range(8):
        for overhead in (1.0, 1.5):
            partner = Partners(there, overhead, seed).take(job)
            assert partner is not None and partner.name == "r1"
    assert Partners(there[:1], 1.0, 1).take(job) is None
