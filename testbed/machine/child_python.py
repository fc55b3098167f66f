"""How a process of the testbed starts another Python: never with the current directory on its module search path.

A run works as root, and the current directory may be one that other users write to: a ``resource.py`` that
somebody left there must not be what ``import resource`` finds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).resolve().parents[2]
"""The folder of the four packages, from which child processes import them."""


def python_module(module: str, *arguments: str, site: bool = True) -> list[str]:
    """Return the command that runs ``python -m module arguments``, to be started with :func:`child_environment`.

    Without ``site`` only the standard library and the four packages can be imported, and it starts faster.
    """
    return [sys.executable, "-P", *([] if site else ["-S"]), "-m", module, *arguments]


def child_environment(given: str | None = None, **more: str) -> dict[str, str]:
    """Return the environment of a child: this process's, the module search path of ``given``, and ``more``.

    ``given`` is as for :func:`module_path`.
    """
    return {**os.environ, "PYTHONPATH": module_path(given), **more}


def module_path(given: str | None = None) -> str:
    """Return the ``PYTHONPATH`` of a child: the four packages, then the entries of ``given`` (default: ours).

    An empty entry, which means the current directory, is left out; relative ones become absolute.
    """
    entries = os.environ.get("PYTHONPATH", "") if given is None else given
    places = [os.path.abspath(entry) for entry in entries.split(os.pathsep) if entry]
    return os.pathsep.join(dict.fromkeys([str(PACKAGES), *places]))
