"""The garbage collector is as it was after a replay, however that ended."""

from __future__ import annotations

import gc

import pytest

from testbed.engines.replay.gc_tuning import MANY, seldom_collected


def test_the_collector_looks_seldom_and_is_put_back_whatever_happens() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), seldom_collected():
        assert gc.get_threshold()[0] == MANY
        raise KeyError
    assert gc.get_threshold() == before
