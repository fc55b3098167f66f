"""Writing a file so that whoever reads it finds all of it, or what was there before."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Write ``text`` as UTF-8 beside ``path`` and rename it; a link at ``path`` is replaced, not followed.

    ``mode``: its permissions, those that the umask leaves by default. What UTF-8 cannot express is escaped. Raises
    ``OSError``, and then ``path`` is as before.
    """
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(draft, flags, 0o666 if mode is None else 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            if mode is not None:
                os.fchmod(descriptor, mode)
            stream.write(text)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
