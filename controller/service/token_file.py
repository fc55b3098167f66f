"""The token of the REST interface: made at every start, in a file that only its user can read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from workloads.whole_file import write_whole

_FORM: Final = re.compile(rb"controller-[A-Za-z0-9_-]{43}\n")


class TokenFile:
    """A token, and the file ``path`` that tells it to those who may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = f"controller-{secrets.token_urlsafe(32)}"

    def write(self) -> str:
        """Write the file with mode 600 and return the token.

        Only a token file of before is replaced. ``OSError`` with one line where something else is there, or the file
        cannot be written.
        """
        try:
            if os.path.lexists(self._path) and not _is_token_file(self._path):
                raise OSError("it exists and holds no token, expected a path that is free")
            write_whole(self._path, f"{self._token}\n", 0o600)
        except OSError as error:
            raise OSError(f"token file {self._path} cannot be written: {error.strerror or error}") from error
        return self._token

    def remove(self) -> None:
        """Remove the file if it still holds the token."""
        with suppress(OSError):
            if _is_token_file(self._path) and self._path.read_text("ascii") == f"{self._token}\n":
                self._path.unlink()


def _is_token_file(path: Path) -> bool:
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > 100:
        return False
    return _FORM.fullmatch(path.read_bytes()) is not None
