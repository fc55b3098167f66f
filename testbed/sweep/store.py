"""The points of a sweep on disk: one folder each, taken from there as long as nothing that decides them changes.

``OUT/<point>/`` holds the run directory, whole, and ``point.json``, written last. What an interrupted run has left is
removed when the point is rerun; a complete run that no longer counts stays beside the new one, and so does one
that somebody is still writing. One sweep at a time works in ``OUT``: it holds a lock on ``OUT/.lock``.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testbed.errors import BadInputError, CannotRunError, RunFailedError
from testbed.machine.file_lock import FileLock
from testbed.results.plain_names import plain_name, plain_parts
from testbed.results.run_directory import UNFINISHED, RunDirectory
from testbed.sweep.values import PointOutcome, SweepPoint, outcome_of

NOTE: Final = "point.json"
LOCK: Final = ".lock"
LOCK_WAIT_S: Final = 2.0
"""The processes of a sweep that was killed end a moment after it."""
DRAFT: Final = ".unfinished-"
"""How names of folders begin that do not have their own name yet, as in :mod:`testbed.results.run_directory`."""


class BusyError(CannotRunError):
    """Another sweep is at work in the same place."""


class Store:
    """The folders under ``out``. ``redo``: points with a verdict that is not ``ok`` do not count as made."""

    def __init__(self, out: Path, *, redo: bool = False) -> None:
        self.out = out
        self._redo = redo

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other sweeps away from ``out``; ``BusyError`` if one is at work there.

        ``BadInputError`` if ``out`` cannot be made.
        """
        lock = self._lock()
        try:
            yield
        finally:
            lock.release()

    def _lock(self) -> FileLock:
        deadline = time.monotonic() + LOCK_WAIT_S
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            while (lock := FileLock.take(self.out / LOCK)) is None:
                if time.monotonic() > deadline:
                    raise BusyError(f"{self.out}: another sweep is at work there: wait for it, or choose another --out")
                time.sleep(0.1)
        except OSError as error:
            why = "Not a directory" if isinstance(error, FileExistsError) else error.strerror
            raise BadInputError(f"{self.out}: {why}, expected a directory to write to") from None
        return lock

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
        """The folder of ``point``, made, without what nobody will complete; ``BadInputError`` if impossible.

        Call it when the turn of ``point`` has come.
        """
        folder = self.folder(point)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for entry in list(folder.iterdir()):
                unfinished = entry.name.startswith(DRAFT) or (entry / UNFINISHED).exists()
                if entry.is_dir() and unfinished and not RunDirectory(entry).owned:
                    shutil.rmtree(entry)
        except OSError as error:
            raise BadInputError(f"{folder}: {error.strerror or error}, expected a directory to write to") from None
        return folder

    def keep(self, point: SweepPoint, outcome: PointOutcome) -> None:
        """Write down that ``point`` is complete; nothing for one that failed, which is rerun next time."""
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
