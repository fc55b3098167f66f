"""What a replay takes is counted once: a part at work inside another does not count as the other's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.engines.replay import work as work_module
from testbed.engines.replay.work import Work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is a second further at each look."""
    seconds: Iterator[float] = iter(map(float, range(100)))
    monkeypatch.setattr(work_module.time, "process_time", lambda: next(seconds))


@pytest.mark.usefixtures("clock")
def test_seconds_of_a_part_inside_another_are_its_own() -> None:
    work = Work()
    with work.of("acting"):  # 0 s to 5 s
        for _ in range(2):
            with work.of("placing"):  # 1 s to 2 s, 3 s to 4 s
                pass
    assert work.times == {"acting": 1, "placing": 2}
    assert work.cpu_s == {"acting": 3.0, "placing": 2.0}


@pytest.mark.usefixtures("clock")
def test_a_part_that_fails_has_been_at_work() -> None:
    work = Work()
    with pytest.raises(ValueError, match="stop"), work.of("deciding"):
        raise ValueError("stop")
    assert work.times == {"deciding": 1} and work.cpu_s == {"deciding": 1.0}
