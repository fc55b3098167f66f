"""The directory of a run: what is written while it runs, and read back afterwards.

A kill at any moment leaves the directory either complete or plainly marked: the file ``UNFINISHED``
is in it from its first moment and is removed last, and every file appears whole under its name
(written beside it, then renamed). The files and their columns are contracts; columns that are ours
come after the agreed ones, and two files more than agreed make the directory self-contained:

``experiment.json``         fabric, jobs, scale, levels, seed: what the summary is computed with
``<scheduler>/run.json``    duration, windows, fidelity and environment of that run

Runs of older versions can be read: see :mod:`testbed.results.schema`.
"""

from __future__ import annotations

import errno
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.service.json_codec import decode
from testbed.errors import BadInputError, RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.machine.file_lock import FileLock, is_held
from testbed.results import row_files
from testbed.results.checksums import KEY, changed_files, checksums
from testbed.results.chrome_trace import trace_events
from testbed.results.plain_names import plain_parts, scheduler_name
from testbed.results.record import RunRecord
from testbed.results.record_json import (
    decision_row_from,
    decision_row_to,
    experiment_from,
    experiment_to,
    run_from,
    run_to,
)
from testbed.results.schema import SCHEMA_VERSION, experiment_today, run_today, summary_today
from testbed.results.summary_check import checked_summary
from topologies.limits import RUN_FILE_BYTES, LimitError, one_line, read_bytes
from workloads.whole_file import write_whole

UNFINISHED: Final = "UNFINISHED"
MANIFEST: Final = "manifest.json"
_Value = TypeVar("_Value")


class RunDirectory:
    """One run's directory; made by :meth:`create`, found again by :meth:`open`."""

    def __init__(self, path: Path, owner: FileLock | None = None) -> None:
        self.path = path
        self._owner = owner

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        """Whoever made the directory writes no more in it: what is not finished now belongs to nobody."""
        if self._owner is not None:
            self._owner.release()

    @classmethod
    def create(cls, parent: Path, scenario: str, *, now: float | None = None) -> RunDirectory:
        """Make ``parent/<scenario>-<YYYYmmdd-HHMMSS>``, marked unfinished; a suffix keeps it unique.

        ``now`` is seconds since the epoch. Raises ``RunFailedError`` if it cannot be made.
        """
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
        name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', scenario)}-{stamp}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            # The marker is in place before the directory has its name, so there is no moment without it.
            draft = parent / f".unfinished-{name}-{secrets.token_hex(4)}"
            draft.mkdir()
            (draft / UNFINISHED).write_text("This run has not finished; what is here is not complete.\n", "utf-8")
            owner = FileLock.take(draft / UNFINISHED)
            return cls(_rename_to_free_name(draft, parent / name), owner)
        except OSError as error:
            raise RunFailedError(f"{parent}: cannot make a run directory: {error.strerror or error}") from error

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The finished run in ``path``; ``BadInputError`` if there is none or it did not finish."""
        if not path.is_dir():
            raise BadInputError(f"{path}: no such directory, expected the directory of a run")
        if (path / UNFINISHED).exists():
            raise BadInputError(f"{path}: this run was not finished, expected a complete run directory")
        if not (path / "summary.json").is_file():
            raise BadInputError(f"{path}: no summary.json in it, expected the directory of a run")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return not (self.path / UNFINISHED).exists()

    @property
    def owned(self) -> bool:
        """Whether a live process still writes here: it holds a lock on the mark until then."""
        return is_held(self.path / UNFINISHED)

    def finish(self) -> None:
        """Write the checksums of all files into the manifest and take the mark away: everything is written.

        ``RunFailedError`` if the mark is gone already, or cannot go.
        """
        mark = self.path / UNFINISHED
        try:
            if (self.path / MANIFEST).exists():
                self.write_manifest({**self.read_json(MANIFEST), KEY: checksums(self.path)})
            mark.unlink()
        except OSError as error:
            if not self.path.is_dir():
                raise RunFailedError(f"{self.path}: this directory was removed meanwhile") from error
            raise RunFailedError(f"{mark}: cannot be removed: {error.strerror}") from error

    def changed(self) -> tuple[str, ...]:
        """The files that are not as the run left them; none where there is no manifest, or an old one.

        ``BadInputError`` if ``manifest.json`` is damaged.
        """
        if not (self.path / MANIFEST).exists():
            return ()

        def parse(text: str) -> Mapping[str, str]:
            recorded = decode(dict[str, str], json.loads(text).get(KEY, {}), KEY)
            return {name: recorded[name] for name in recorded if plain_parts(name, KEY)}

        return changed_files(self.path, _parsed(self.place(MANIFEST), parse, "the manifest of a run"))

    def doubt(self) -> str:
        """One line if the files are not as the run left them, or this cannot be told; empty otherwise."""
        try:
            changed = self.changed()
        except BadInputError as error:
            return f"{error}; whether other files were changed cannot be told"
        return f"{self.path}: changed since the run ended: {', '.join(changed)}" if changed else ""

    def place(self, name: str) -> Path:
        """The path of ``name`` (may contain one folder); ``BadInputError`` if it would lie outside this directory."""
        try:
            *folders, last = plain_parts(name, "the name")
        except ValueError as error:
            raise BadInputError(f"{self.path}: {error}") from error
        folder = self.path.joinpath(*folders)
        if len(folders) > 1 or (folders and folder.is_symlink()):
            raise BadInputError(f"{folder}: leads elsewhere, expected a folder of the run directory")
        return folder / last

    def folder(self, scheduler: str) -> Path:
        """The folder of one scheduler's run; made when missing."""
        folder = self._folder(scheduler)
        folder.mkdir(exist_ok=True)
        return folder

    def _folder(self, scheduler: str) -> Path:
        try:
            return self.place(f"{scheduler_name(scheduler)}/run.json").parent
        except ValueError as error:
            raise BadInputError(f"{self.path}: {error}") from error

    def log_file(self, scheduler: str) -> Path:
        """Where that run's log goes; an engine appends to it while it runs."""
        return self.folder(scheduler) / "testbed.log"

    def write_text(self, name: str, text: str) -> Path:
        """Write ``name`` (may contain one folder) whole or not at all; returns its path."""
        target = self.place(name)
        try:
            # A run's directory that was removed meanwhile must not come back without its mark.
            if target.parent != self.path:
                target.parent.mkdir(exist_ok=True)
            write_whole(target, text)
        except OSError as error:
            if not self.path.is_dir():
                raise RunFailedError(f"{self.path}: this directory was removed meanwhile") from error
            raise RunFailedError(f"{target}: cannot be written: {error.strerror or error}") from error
        return target

    def write_json(self, name: str, document: object, *, indent: int | None = 1) -> Path:
        """Write ``document`` as JSON; keys keep their order, numbers their full precision."""
        return self.write_text(name, json.dumps(document, indent=indent, allow_nan=False) + "\n")

    def write_manifest(self, manifest: Mapping[str, object]) -> Path:
        """Write ``manifest.json``: see :mod:`testbed.machine.manifest`."""
        return self.write_json(MANIFEST, manifest)

    def write_scenario(self, resolved_yaml: str) -> Path:
        """Write ``scenario.yaml``, as resolved."""
        return self.write_text("scenario.yaml", resolved_yaml)

    def write_experiment(self, experiment: Experiment) -> Path:
        """Write what the schedulers' runs share; its ``scheduler`` and ``datapath`` are not kept."""
        document = {"schema_version": SCHEMA_VERSION, **experiment_to(experiment)}
        return self.write_json("experiment.json", document, indent=None)

    def write_summary(self, summary: Mapping[str, object]) -> Path:
        """Write ``summary.json``."""
        return self.write_json("summary.json", summary)

    def write_record(self, record: RunRecord, experiment: Experiment) -> Path:
        """Write one scheduler's rows, decisions and timeline; returns its folder."""
        name = record.scheduler
        self.write_text(f"{name}/iterations.csv", row_files.iterations_to_csv(record.iterations))
        self.write_text(f"{name}/links.csv", row_files.links_to_csv(record.links))
        self.write_text(f"{name}/messages.csv", row_files.messages_to_csv(record.messages))
        if record.requests:
            self.write_text(f"{name}/requests.csv", row_files.requests_to_csv(record.requests))
        self.write_text(f"{name}/alone.csv", row_files.alone_to_csv(record.alone))
        self.write_json(f"{name}/decisions.json", [decision_row_to(row) for row in record.decisions])
        self.write_json(f"{name}/run.json", {"schema_version": SCHEMA_VERSION, **run_to(record)})
        self.write_json(f"{name}/timeline.json", trace_events(record, experiment), indent=None)
        self.log_file(name).touch()
        return self.folder(name)

    def read_json(self, name: str) -> Any:
        """The JSON document ``name``; ``BadInputError`` if it is missing or damaged."""
        return _parsed(self.place(name), json.loads, "JSON")

    def read_summary(self) -> dict[str, Any]:
        """``summary.json``; ``BadInputError`` if it is missing or damaged."""

        def parse(text: str) -> dict[str, Any]:
            document = json.loads(text)
            if not isinstance(document, dict) or not isinstance(document.get("runs"), list):
                raise ValueError("no list 'runs' in it")
            return checked_summary(summary_today(document))

        return _parsed(self.path / "summary.json", parse, f"the summary of a run, schema_version {SCHEMA_VERSION}")

    def read_experiment(self) -> Experiment:
        """What the runs share; ``BadInputError`` if ``experiment.json`` is missing or damaged."""

        def parse(text: str) -> Experiment:
            return experiment_from(experiment_today(json.loads(text)))

        return _parsed(self.path / "experiment.json", parse, "an experiment")

    def schedulers(self) -> tuple[str, ...]:
        """The schedulers of this run, in the order they ran."""
        return tuple(str(run["scheduler"]) for run in self.read_summary()["runs"])

    def read_record(self, scheduler: str) -> RunRecord:
        """One scheduler's run as it was written; ``BadInputError`` names the file that is missing or damaged."""
        folder = self._folder(scheduler)
        if not folder.is_dir():
            raise BadInputError(f"{self.path}: no run of scheduler '{scheduler}' in it")
        decisions = _parsed(
            folder / "decisions.json",
            lambda text: tuple(decision_row_from(row) for row in json.loads(text)),
            "a list of decisions",
        )
        iterations = _parsed(folder / "iterations.csv", row_files.iterations_from_csv, "iteration rows")
        links = _parsed(folder / "links.csv", row_files.links_from_csv, "link rows")
        alone = _rows_if_any(folder / "alone.csv", row_files.alone_from_csv, "rows of jobs alone")
        messages = _rows_if_any(folder / "messages.csv", row_files.messages_from_csv, "rows of messages")
        requests = _rows_if_any(folder / "requests.csv", row_files.requests_from_csv, "rows of requests")

        def parse(text: str) -> RunRecord:
            document = run_today(json.loads(text))
            record = run_from(
                document,
                iterations=iterations,
                links=links,
                decisions=decisions,
                messages=messages,
                alone=alone,
                requests=requests,
            )
            if record.scheduler != scheduler:
                raise ValueError(f"scheduler {record.scheduler!a} instead of that of its folder")
            return record

        return _parsed(folder / "run.json", parse, "what a run records")

    def read_records(self) -> tuple[RunRecord, ...]:
        """Every scheduler's run, in the order they ran."""
        return tuple(self.read_record(scheduler) for scheduler in self.schedulers())


def read_record(directory: Path, scheduler: str) -> RunRecord:
    """The run of ``scheduler`` in the finished run ``directory``; ``BadInputError`` with one line otherwise."""
    return RunDirectory.open(directory).read_record(scheduler)


def open_all(paths: Sequence[Path]) -> tuple[RunDirectory, ...]:
    """Open several; ``BadInputError`` has a line for each that cannot be read."""
    opened, wrong = [], []
    for path in paths:
        try:
            opened.append(RunDirectory.open(path))
        except BadInputError as error:
            wrong.append(str(error))
    if wrong:
        raise BadInputError("\n".join(wrong))
    return tuple(opened)


def _rows_if_any(path: Path, parse: Callable[[str], tuple[_Value, ...]], expected: str) -> tuple[_Value, ...]:
    """The rows in ``path``; none in a run of a version that did not write it."""
    return _parsed(path, parse, expected) if path.exists() else ()


def _parsed(path: Path, parse: Callable[[str], _Value], expected: str) -> _Value:
    try:
        return parse(_text(path))
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file, expected {expected}") from None
    except (OSError, LimitError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInputError(f"{path}: cannot be read: {reason}") from error
    except row_files.RowError as error:
        raise BadInputError(f"{path}:{error.line}: {one_line(str(error))}, expected {expected}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise BadInputError(f"{path}: damaged ({one_line(reason)}), expected {expected}") from error


def _text(path: Path) -> str:
    return read_bytes(path, RUN_FILE_BYTES).decode("utf-8")


def _names(wanted: Path) -> Iterator[Path]:
    yield wanted
    for number in range(2, 10_000):
        yield wanted.with_name(f"{wanted.name}-{number}")


def _rename_to_free_name(draft: Path, wanted: Path) -> Path:
    for name in _names(wanted):
        try:
            # Renaming onto a directory that holds something fails, so two runs can never share one.
            draft.rename(name)
            return name
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
    raise OSError(f"no free name like {wanted.name}")
