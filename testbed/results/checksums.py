"""SHA-256 of a run's files: taken when it ends, compared when its directory is read.

They show what was changed afterwards, by hand or by a disk. They are no signature: who can change a file can change
the manifest, too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from topologies.limits import RUN_FILE_BYTES, LimitError, open_regular

KEY: Final = "files_sha256"
"""Of ``manifest.json``: name of a file -> its checksum."""
_DERIVED: Final = ("manifest.json", "report.html", "plots")
"""What ``report`` makes again from the other files, and the file that holds the checksums."""


def checksums(directory: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of the run in ``directory`` but hidden ones and those made from others."""
    files = [path for pattern in ("*.*", "*/*.*") for path in directory.glob(pattern) if path.is_file()]
    names = sorted(str(path.relative_to(directory)) for path in files)
    return {name: _sha256(directory / name) for name in names if _is_kept(name.split("/"))}


def changed_files(directory: Path, recorded: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files whose checksum is not the ``recorded`` one, missing ones included."""
    return tuple(name for name, before in recorded.items() if _now(directory / name) != before)


def _is_kept(parts: Sequence[str]) -> bool:
    return parts[0] not in _DERIVED and not any(part.startswith(".") for part in parts)


def _now(path: Path) -> str | None:
    try:
        return _sha256(path, RUN_FILE_BYTES)
    except (OSError, LimitError):
        return None


def _sha256(path: Path, most_bytes: float = math.inf) -> str:
    with open_regular(path, most_bytes) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
