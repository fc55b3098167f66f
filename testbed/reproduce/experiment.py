"""What every experiment takes and gives, and how it is found by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, Protocol, TypeVar, cast

from testbed.errors import BadInputError
from testbed.progress import Progress

_PACKAGE: Final = "testbed.reproduce.experiments"
_CHUNK: Final = 5

Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """What the user may choose: how many cases, which draw of them, how many processes."""

    cases: int
    seed: int = 1
    processes: int = 1


@dataclass(frozen=True)
class Row:
    """One line of the result: the ``paper``'s numbers and those found ``here``, by the same keys."""

    label: str
    paper: Mapping[str, float] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the printed table: which number, its head, and how it is written (a format of one number)."""

    key: str
    title: str
    form: Callable[[float], str]
    paper: bool = False


class Experiment(Protocol):
    """What a module under :mod:`testbed.reproduce.experiments` offers."""

    SUMMARY: str
    SOURCE: str
    COLUMNS: Sequence[Column]
    CASES: int
    run: Callable[[Settings, Progress], Sequence[Row]]


def names() -> tuple[str, ...]:
    """The names of all experiments, in alphabetical order."""
    package = import_module(_PACKAGE)
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(package.__path__)))


def find(name: str) -> Experiment:
    """Return the experiment called ``name``; :class:`~testbed.errors.BadInputError` if there is none."""
    if name not in names():
        raise BadInputError(f"unknown experiment '{name}', expected one of: {', '.join(names())}")
    return cast(Experiment, import_module(f"{_PACKAGE}.{name.replace('-', '_')}"))


def each_case(make: Callable[[int, int], Result], settings: Settings, progress: Progress) -> list[Result]:
    """Return ``make(seed, index)`` for every case, in order, worked on by ``settings.processes`` processes."""
    count, seeds = settings.cases, [settings.seed] * settings.cases
    progress.phase(f"{count} cases", count)
    if settings.processes == 1:
        return _counted(map(make, seeds, range(count)), progress)
    with ProcessPoolExecutor(settings.processes) as pool:
        return _counted(pool.map(make, seeds, range(count), chunksize=_CHUNK), progress)


def _counted(results: Iterable[Result], progress: Progress) -> list[Result]:
    done: list[Result] = []
    for result in results:
        done.append(result)
        progress.advance_to(len(done))
    return done
