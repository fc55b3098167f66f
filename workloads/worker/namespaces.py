"""Network namespaces: a socket stays in the one where it was made, so one process can serve several hosts."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespaces:
    """The network namespaces of this process and of its hosts; they live as long as this process keeps them open."""

    def __init__(self) -> None:
        self._own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def of(self, pid: int | None) -> Namespace:
        """The namespace of the process ``pid``; None: that of this process. ``OSError`` if ``pid`` is gone."""
        if pid is None:
            return Namespace(self._own, None)
        return Namespace(self._own, os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC))


class Namespace:
    """A network namespace, by its descriptor ``there``; None is the process's ``own``."""

    def __init__(self, own: int, there: int | None) -> None:
        self._own = own
        self._there = there

    def inside(self) -> AbstractContextManager[None]:
        """Make sockets there while the context lasts; ``OSError`` if the kernel does not let this process in."""
        return nullcontext() if self._there is None else self._visit(self._there)

    @contextmanager
    def _visit(self, there: int) -> Iterator[None]:
        _enter(there)
        try:
            yield
        finally:
            _enter(self._own)


def _enter(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")
