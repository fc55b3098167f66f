"""How a run's inside and outside exchange values: pickles in the run's own directory, gone after use."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.results.record import RunRecord


def write_request(path: Path, experiment: Experiment, directory: Path) -> None:
    """Leave what the inside shall run at ``path``."""
    path.write_bytes(pickle.dumps((experiment, directory)))


def read_request(path: Path) -> tuple[Experiment, Path]:
    """Read what to run."""
    experiment, directory = pickle.loads(path.read_bytes())
    return experiment, directory


def write_answer(path: Path, answer: RunRecord | Exception) -> None:
    """Replace the request by the record, or by the message of what went wrong, with the traceback for the log."""
    if isinstance(answer, Exception):
        details = "".join(traceback.format_exception(answer))
        path.write_bytes(pickle.dumps((str(answer) or type(answer).__name__, details)))
    else:
        path.write_bytes(pickle.dumps(answer))


def read_answer(path: Path, log: Path) -> RunRecord:
    """Return the record; ``RunFailedError`` with the inside's message if there is none."""
    try:
        answer = pickle.loads(path.read_bytes())
    except (OSError, pickle.UnpicklingError, EOFError) as error:
        raise RunFailedError(f"the run ended without a record, see {log}") from error
    finally:
        path.unlink(missing_ok=True)
    if isinstance(answer, RunRecord):
        return answer
    if isinstance(answer, tuple) and isinstance(answer[0], str):
        with log.open("a") as file:
            file.write(answer[1])
        raise RunFailedError(answer[0])
    raise RunFailedError(f"the run was ended from outside, see {log}")
