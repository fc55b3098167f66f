"""Compilation to machine code, kept to one module: the compiler has no type annotations, and is optional.

numba and LLVM take 200 MB, twice as much as all else, so they are the extra ``fast``. Without them the same functions
run as plain Python: the same operations in the same order, so the same numbers, only slower
(what they return may be a scalar of numpy).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function`` compiled at its first call; the code is kept on disk for later processes.

    Where neither the package's nor the user's cache directory can be written, it is compiled again
    in every process. Without numba, return ``function`` itself.
    """
    return _compiled(function)


def compiled_in_place(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``function``, which creates no arrays, compiled like :func:`compiled`.

    The compiler counts no references to arrays in it: in loops over events that took two thirds of the time.
    """
    return _compiled(function, in_place=True)


def _compiled(function: Callable[Parameters, Result], *, in_place: bool = False) -> Callable[Parameters, Result]:
    try:
        njit, known = import_module("numba").njit, vars(import_module("numba.core.options").DefaultOptions)
    except ModuleNotFoundError:
        return function
    # The loops here call small functions millions of times; and none of them divides by zero.
    options = {"forceinline": True, "error_model": "numpy"}
    if in_place and "_nrt" in known:  # numba's own name, not documented: without it the loops are only slower
        options["_nrt"] = False
    try:
        return cast(Callable[Parameters, Result], njit(cache=True, **options)(function))
    except RuntimeError:  # numba finds no directory for its cache, and raises before it compiles
        return cast(Callable[Parameters, Result], njit(**options)(function))
