"""Compilation to machine code, kept to one module: the compiler has no type annotations, and is optional.

numba and LLVM take 200 MB, twice as much as all else, so they are the extra ``fast``. Without them the same functions
run as plain Python: the same operations in the same order, so the same numbers, only slower
(what they return may be a scalar of numpy).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function`` compiled at its first call; the code is kept on disk for later processes.

    Where neither the package's nor the user's cache directory can be written, it is compiled again
    in every process. Without numba, return ``function`` itself.
    """
    return _compiled(function)


def compiled_or(
    plain: Callable[Parameters, Result],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Compile a function like :func:`compiled`; without the compiler take ``plain``, which computes the same numbers.

    For loops over thousands of flows, which operations on arrays do in a tenth of the time of plain Python.
    """

    def chosen(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        made = _compiled(function)
        return plain if made is function else made

    return chosen


def compiled_in_place(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function``, which creates no arrays, compiled like :func:`compiled`.

    The compiler counts no references to arrays in it: in loops over events that took two thirds of the time.
    """
    return _compiled(function, in_place=True)


@cache
def has_compiler() -> bool:
    """Whether functions are compiled in this process."""
    try:
        import_module("numba.core.options")
    except ModuleNotFoundError:
        return False
    return True


def _compiled(function: Callable[Parameters, Result], *, in_place: bool = False) -> Callable[Parameters, Result]:
    if not has_compiler():
        return function
    njit, known = import_module("numba").njit, vars(import_module("numba.core.options").DefaultOptions)
    # The loops here call small functions millions of times; and none of them divides by zero.
    options = {"forceinline": True, "error_model": "numpy"}
    if in_place and "_nrt" in known:  # numba's own name, not documented: without it the loops are only slower
        options["_nrt"] = False
    try:
        return cast(Callable[Parameters, Result], _fresh(njit(cache=True, **options)(function)))
    except RuntimeError:  # numba finds no directory for its cache, and raises before it compiles
        return cast(Callable[Parameters, Result], njit(**options)(function))


def _fresh(dispatcher: Any) -> Any:
    """Let kept code hold only for the present source of all compiled modules.

    numba looks at the file of the function itself, and code of another file that is compiled into it would stay as it
    was. The names are numba's own: where it has others, that remains so, but an installer replaces all files at once.
    """
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _sources())
    if hasattr(file, "_load_index"):
        file._load_index = _or_nothing(file._load_index)
    return dispatcher


def _or_nothing(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """What ``load`` finds; nothing where the index of kept code names types that are no longer there."""

    def careful() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    return careful


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """Path, time of change in ns, and size of every module that may be compiled into another."""
    place = Path(__file__).parents[1]
    files = sorted(
        file for folder in ("fluid", "packets", "rdma", "engines") for file in (place / folder).rglob("*.py")
    )
    return tuple((str(file.relative_to(place)), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
