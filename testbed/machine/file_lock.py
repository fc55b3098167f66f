"""Locks on files that last as long as the process that holds them, however that process ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class FileLock:
    """An exclusive lock on a file; processes forked from its holder hold it too. Gone with :meth:`release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> FileLock | None:
        """Lock the file ``path``, made if there is none; None if a live process holds it. ``OSError`` as of opening it.

        On a file system, or a system, without such locks everybody gets one.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except (OSError, ImportError):
            pass
        return cls(descriptor)

    def release(self) -> None:
        """Let others have it; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock on ``path``; False where there is no such file, or no locks."""
    with contextlib.suppress(OSError, ImportError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
