"""The distribution that holds the four packages: its name on package indexes, its version, and its extras.

On package indexes ``testbed`` is the name of another project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from testbed.errors import CannotRunError

DISTRIBUTION: Final = "gpu-communication-testbed"


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages that only some commands need. ``modules``: name on the index -> modules of which any one will do.

    ``use`` is what needs them, ``without`` what follows where one is missing.
    """

    modules: Mapping[str, Sequence[str]]
    use: str
    without: str

    def missing(self) -> list[str]:
        """Those of the packages, by their names on the index, that this Python does not have."""
        return [package for package, modules in self.modules.items() if not any(map(has_module, modules))]


EXTRAS: Final[Mapping[str, Extra]] = {
    "emulation": Extra(
        {"eventlet": ["eventlet"], "os-ken": ["ryu", "os_ken"], "scapy": ["scapy"]}, "emulation", "no emulation"
    ),
    "fast": Extra({"numba": ["numba"]}, "compiled code", "the same numbers, in 2 to 100 times the time"),
    "plots": Extra({"matplotlib": ["matplotlib"]}, "drawing plots as files", "no plots as files"),
    "notebook": Extra({"pandas": ["pandas"]}, "reading results as data frames", "no data frames"),
    "ray": Extra({"ray": ["ray"]}, "sweep --on ray", "sweeps run on this machine only"),
}


def package_version() -> str:
    """The version of this package; empty if it is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


@cache
def sources_digest(*packages: str) -> str:
    """A hash of every Python and YAML file of ``packages``, such as ``testbed.fluid``: another one means other code.

    The version tells releases apart, but not the states of a checkout between two of them.
    """
    digest = hashlib.sha256()
    for package in packages:
        found = find_spec(package)
        for folder in map(Path, (found.submodule_search_locations or []) if found else []):
            for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.yaml"))):
                digest.update(f"{package} {file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def has_module(name: str) -> bool:
    """Whether this Python finds the module ``name``; it is not imported."""
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that is there without a specification, or one that is blocked with None
        return False


def has_extra(name: str) -> bool:
    """Whether all packages of the extra ``name`` are there."""
    return not EXTRAS[name].missing()


def require_extra(name: str) -> None:
    """Raise ``CannotRunError``, one line with the command that installs it, where the extra ``name`` is missing."""
    if not has_extra(name):
        raise CannotRunError(remedy(name))


def remedy(name: str) -> str:
    """Return the line that says what the extra ``name`` lacks and how to install it."""
    extra = EXTRAS[name]
    lacks = extra.missing() or list(extra.modules)
    packages = f"{', '.join(lacks[:-1])} and {lacks[-1]}" if len(lacks) > 1 else lacks[0]
    return f"{extra.use} needs {packages}: {installing(name)}"


def installing(name: str) -> str:
    """Return the command that installs the extra ``name``."""
    return f"pip install '{DISTRIBUTION}[{name}]'"
