"""Continuous batching: requests join and leave between steps, and every step makes a token for each."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.serving.decoding import Waiting, decode
from workloads.serving.served import DecodeModel

STEADY = DecodeModel(
    batch=8, most_tokens=10_000, weights_s=0.01, experts_s=0.0, expert_share=0.0, token_s=0.0, compute_s=0.0, sums_s=0.0
)
"""Every step takes 10 ms, whoever is in it."""


def test_a_request_alone_gets_a_token_with_every_step() -> None:
    decoded = decode([Waiting(1.0, 1.5, prompt=100, output=5)], STEADY)
    assert decoded.last_token_s == [pytest.approx(1.54)]
    assert decoded.busy == [(1.5, pytest.approx(1.54))]
    assert sum(count for _, count, _ in decoded.gaps) == 4
    assert decoded.gaps[0][0] == pytest.approx(0.51)  # the cache was half a second on its way


def test_an_answer_of_one_token_needs_no_decoding() -> None:
    assert decode([Waiting(1.0, 1.5, prompt=100, output=1)], STEADY).last_token_s == [1.0]


def test_a_request_joins_the_next_step() -> None:
    decoded = decode([Waiting(0.0, 0.0, 10, 3), Waiting(0.0, 0.005, 10, 3)], STEADY)
    assert decoded.last_token_s == [pytest.approx(0.02), pytest.approx(0.03)]


def test_a_full_batch_lets_others_wait() -> None:
    decoded = decode([Waiting(0.0, 0.0, 10, 3), Waiting(0.0, 0.0, 10, 3)], replace(STEADY, batch=1))
    assert decoded.last_token_s == [pytest.approx(0.02), pytest.approx(0.04)]


def test_caches_that_do_not_fit_together_wait() -> None:
    decoded = decode([Waiting(0.0, 0.0, 10, 3), Waiting(0.0, 0.0, 10, 3)], replace(STEADY, most_tokens=20))
    assert decoded.last_token_s == [pytest.approx(0.02), pytest.approx(0.04)]


def test_what_never_fits_never_ends() -> None:
    assert decode([Waiting(0.0, 0.0, 100, 3)], replace(STEADY, most_tokens=20)).last_token_s == [inf]


def test_a_step_reads_weights_and_cache_or_computes_if_that_is_longer() -> None:
    model = replace(STEADY, token_s=0.001, compute_s=0.1, sums_s=0.005)
    assert model.step_s(1, 200) == pytest.approx(0.01 + 0.2 + 0.005)
    assert model.step_s(4, 200) == pytest.approx(0.4 + 0.02)


def test_few_tokens_need_few_experts() -> None:
    model = replace(STEADY, weights_s=0.0, experts_s=1.0, expert_share=0.25)
    assert model.step_s(1, 0) == pytest.approx(0.25)
    assert model.step_s(2, 0) == pytest.approx(1 - 0.75**2)


waiting = st.builds(
    lambda first, wait, prompt, output: Waiting(first, first + wait, prompt, output),
    st.floats(0, 2),
    st.floats(0, 1),
    st.integers(1, 200),
    st.integers(1, 20),
)


@given(st.lists(waiting, max_size=12), st.integers(1, 4), st.integers(221, 600))
def test_every_token_is_made_once_and_no_more_is_decoded_at_once_than_fits(
    requests: list[Waiting], batch: int, most: int
) -> None:
    decoded = decode(requests, replace(STEADY, batch=batch, most_tokens=most))
    assert sum(count for _, count, _ in decoded.gaps) == sum(each.output - 1 for each in requests)
    for each, last_s in zip(requests, decoded.last_token_s, strict=True):
        steps = each.output - 1
        assert last_s >= (each.ready_s + 0.01 * steps - 1e-9 if steps else each.first_token_s)
    busy_s = sum(end - begin for begin, end in decoded.busy)
    assert busy_s >= 0.01 * max((each.output - 1 for each in requests), default=0) - 1e-9
    assert busy_s <= 0.01 * sum(each.output - 1 for each in requests) + 1e-9
    assert all(one[1] < other[0] for one, other in zip(decoded.busy, decoded.busy[1:], strict=False))
