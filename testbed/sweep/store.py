"""The points of a sweep on disk: one folder each, taken from there as long as nothing that decides them changes.

``OUT/<point>/`` holds the run directory, whole, and ``point.json``, written last. What an interrupted run has left is
removed when the point is made again; a complete run that no longer counts stays beside the new one.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from testbed.errors import BadInputError, RunFailedError
from testbed.results.plain_names import plain_name, plain_parts
from testbed.results.run_directory import UNFINISHED, RunDirectory
from testbed.sweep.values import PointOutcome, SweepPoint, outcome_of

NOTE: Final = "point.json"
DRAFT: Final = ".unfinished-"
"""How names of folders begin that do not have their own name yet, as in :mod:`testbed.results.run_directory`."""


class Store:
    """The folders under ``out``. ``redo``: points with a verdict that is not ``ok`` do not count as made."""

    def __init__(self, out: Path, *, redo: bool = False) -> None:
        self.out = out
        self._redo = redo

    def folder(self, point: SweepPoint) -> Path:
        """Where ``point`` is kept."""
        return self.out / point.name

    def kept(self, point: SweepPoint) -> PointOutcome | None:
        """What ``point`` came to before; None if it is to be made."""
        folder = self.folder(point)
        try:
            note = RunDirectory(folder).read_json(NOTE)
            if note["fingerprint"] != point.fingerprint:
                return None
            name = plain_name(note["directory"], "the directory")
            outcome = outcome_of(RunDirectory.open(folder / name).read_summary(), name)
        except (BadInputError, KeyError, TypeError, ValueError, AttributeError):
            return None
        return None if self._redo and not outcome.believable else outcome

    def prepare(self, point: SweepPoint) -> Path:
        """The folder of ``point``, made, with nothing in it that is not complete; ``BadInputError`` if impossible."""
        folder = self.folder(point)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for entry in list(folder.iterdir()):
                if entry.is_dir() and (entry.name.startswith(DRAFT) or (entry / UNFINISHED).exists()):
                    shutil.rmtree(entry)
        except OSError as error:
            raise BadInputError(f"{folder}: {error.strerror or error}, expected a directory to write to") from None
        return folder

    def keep(self, point: SweepPoint, outcome: PointOutcome) -> None:
        """Write down that ``point`` is complete; nothing for one that failed, which is made again next time."""
        if outcome.problem or not outcome.directory:
            return
        note = {
            "point": point.name,
            "set": dict(point.settings),
            "seed": point.seed,
            "fingerprint": point.fingerprint,
            "directory": outcome.directory,
        }
        RunDirectory(self.folder(point)).write_json(NOTE, note)


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Put ``files`` (path -> content), made elsewhere, into ``folder``; what is a folder appears whole or not at all.

    Raises ``RunFailedError`` if they cannot be written, or a path would lead elsewhere.
    """
    try:
        places = {plain_parts(name, "the file"): content for name, content in files.items()}
    except ValueError as error:
        raise RunFailedError(f"{folder}: {error}") from error
    try:
        for top in sorted({first for first, *_ in places}):
            draft = folder / f"{DRAFT}{top}"
            shutil.rmtree(draft, ignore_errors=True)
            for (first, *rest), content in places.items():
                if first == top:
                    target = draft.joinpath(*rest)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content)
            draft.replace(folder / top)
    except OSError as error:
        raise RunFailedError(f"{folder}: cannot be written: {error.strerror or error}") from error


def pack(folder: Path) -> dict[str, bytes]:
    """Every file under ``folder`` by its path in it, but for hidden ones: those were never finished."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(name): (folder / name).read_bytes()
        for name in names
        if not any(part.startswith(".") for part in name.parts)
    }
