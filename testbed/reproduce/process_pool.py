"""The cases of an experiment, each computed by one of several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from testbed.machine.process_pool import started
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import Settings

_CHUNK: Final = 5

Result = TypeVar("Result")


def each_case(make: Callable[[int, int], Result], settings: Settings, progress: Progress) -> list[Result]:
    """Return ``make(seed, index)`` for every case, in order, computed by ``settings.processes`` processes."""
    count, seeds = settings.cases, [settings.seed] * settings.cases
    progress.phase(f"{count} cases", count)
    if settings.processes == 1:
        return _counted(map(make, seeds, range(count)), progress)
    with started(settings.processes, lambda pool: pool.map(make, seeds, range(count), chunksize=_CHUNK)) as results:
        return _counted(results, progress)


def _counted(results: Iterable[Result], progress: Progress) -> list[Result]:
    done: list[Result] = []
    for result in results:
        done.append(result)
        progress.advance_to(len(done))
    return done
