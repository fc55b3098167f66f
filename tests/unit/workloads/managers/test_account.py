"""A job's account: times, preemptions and migrations, and the steps that each action becomes."""

from __future__ import annotations

from math import inf

import pytest

from workloads.managers.account import Account, PutOn, ShareGpus, TakeOff, carry_out
from workloads.managers.actions import Action, Loan, Migrate, Pack, Preempt, Promote, Requeue, Resize, Start
from workloads.managers.jobs import Waiting

ONE, TWO = Waiting("one", 2), Waiting("two", 2)


def accounts(**gpus: tuple[str, ...]) -> dict[str, Account]:
    """Jobs that have held these GPUs since 0 s."""
    return {name: Account(name, 2, 0.0, gpus=held) for name, held in gpus.items()}


def steps(action: Action, known: dict[str, Account], now_s: float = 10.0) -> list[object]:
    return list(carry_out(action, known, now_s))


def test_a_start_puts_a_job_on_its_gpus_and_is_no_migration() -> None:
    known = accounts(one=())
    assert steps(Start(ONE, ("a", "b"), 10.0, "", pause_s=3.0), known) == [PutOn("one", ("a", "b"), 3.0)]
    assert (known["one"].gpus, known["one"].since_s, known["one"].migrations) == (("a", "b"), 10.0, 0)


@pytest.mark.parametrize("action", [Resize("one", ("c",), 10.0, ""), Migrate("one", ("c",), 10.0, "")])
def test_who_moves_is_taken_off_first(action: Action) -> None:
    known = accounts(one=("a", "b"))
    assert steps(action, known) == [TakeOff("one"), PutOn("one", ("c",), 0.0)]
    assert (known["one"].migrations, known["one"].held_s, known["one"].held_gpu_s) == (1, 10.0, 20.0)


def test_the_account_changes_after_the_job_was_taken_off() -> None:
    known = accounts(one=("a", "b"))
    for step in carry_out(Preempt("one", 10.0, ""), known, 10.0):
        assert step == TakeOff("one") and known["one"].gpus == ("a", "b")
    assert (known["one"].gpus, known["one"].preemptions, known["one"].held_s) == ((), 1, 10.0)


def test_a_pack_leaves_those_on_its_gpus_alone() -> None:
    known = accounts(one=("a", "b"), two=("c", "d"))
    share = ShareGpus(("one", "two"), ("a", "b"))
    assert steps(Pack((ONE, TWO), ("a", "b"), 10.0, ""), known) == [
        TakeOff("two"),
        PutOn("two", ("a", "b"), 0.0),
        share,
    ]
    assert [known[name].migrations for name in known] == [0, 1]
    assert steps(Pack((ONE, TWO), ("a", "b"), 10.0, ""), known) == [share]


@pytest.mark.parametrize("action", [Loan(("h0",), 10.0, ""), Requeue("one", 20.0, 10.0, ""), Promote("one", 10.0, "")])
def test_what_changes_nobodys_progress_has_no_steps(action: Action) -> None:
    assert steps(action, accounts(one=())) == []


def test_holding_gpus_while_waiting_for_more_is_gpu_time_but_no_migration_and_no_preemption() -> None:
    known = accounts(one=())
    steps(Start(ONE, ("a",), 10.0, "", pause_s=inf), known)
    assert (known["one"].outcome(15.0, 6.0).holds, known["one"].outcome(15.0, 6.0).held_s) == (1, 0.0)
    assert steps(Requeue("one", 40.0, 20.0, ""), known, 20.0) == [TakeOff("one")]
    steps(Start(ONE, ("a",), 40.0, "", pause_s=inf), known, 40.0)
    steps(Resize("one", ("a", "b"), 50.0, ""), known, 50.0)
    done = known["one"].outcome(60.0, 6.0)
    assert (done.allocated_gpu_s, done.held_s, done.preemptions, done.migrations, done.holds) == (40.0, 10.0, 0, 0, 0)


def test_the_outcome_adds_what_is_still_held_and_leaves_the_account_as_it_is() -> None:
    account = Account("one", 2, 1.0)
    account.begin(2.0)
    account.move(("a", "b"), 2.0)
    account.fail(5.0)
    account.begin(7.0)
    account.move(("a",), 7.0)
    for _ in range(2):
        found = account.outcome(9.0, 6.0, {"share": 1.0})
        assert (found.start_s, found.end_s, found.jct_s, found.attempts, found.migrations) == (2.0, None, None, 2, 0)
        assert (found.held_s, found.allocated_gpu_s, found.alone_s, found.waits) == (5.0, 8.0, 6.0, {"share": 1.0})
    account.end(10.0)
    done = account.outcome(99.0, 6.0)
    assert (done.end_s, done.jct_s, done.held_s, done.allocated_gpu_s) == (10.0, 9.0, 6.0, 9.0)


def test_a_job_that_is_stopped_and_started_at_once_has_migrated() -> None:
    account = Account("job", 2, 0.0)
    account.move(("g0", "g1"), 0.0)
    account.preempt(10.0)
    account.move(("g2", "g3"), 10.0)
    assert (account.preemptions, account.migrations) == (0, 1)
    account.preempt(20.0)
    account.move(("g0", "g1"), 25.0)
    assert (account.preemptions, account.migrations) == (1, 1)


@pytest.mark.parametrize(
    ("end_s", "status", "failed"),
    [(9.0, "unsuccessful", 3), (9.0, "passed", 2), (9.0, "killed", 2), (None, "passed", 2)],
)
def test_the_last_attempt_of_a_job_that_fails_for_good_failed_too(
    end_s: float | None, status: str, failed: int
) -> None:
    account = Account("one", 2, 0.0, end_s=end_s, attempts=3)
    assert account.outcome(10.0, 5.0, status=status).failed_attempts == failed


def test_the_attempt_that_runs_at_the_end_has_not_failed() -> None:
    assert Account("one", 2, 0.0, attempts=3).outcome(10.0, 5.0, status="unsuccessful").failed_attempts == 2
