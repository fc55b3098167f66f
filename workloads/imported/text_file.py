"""Reading whole files that describe a workload: text, or a JSON object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from topologies.limits import WORKLOAD_BYTES, LimitError, line_of_damage, read_text
from workloads.imported.errors import WorkloadFileError


def read_workload_text(path: Path, expected: str) -> str:
    """Return the text in ``path``; :class:`WorkloadFileError` if it cannot be read, saying what was ``expected``."""
    try:
        return read_text(path, WORKLOAD_BYTES)
    except UnicodeDecodeError as error:
        raise WorkloadFileError(str(path), line_of_damage(error), "not UTF-8 text", expected) from None
    except LimitError as error:
        raise WorkloadFileError(str(path), None, str(error), f"a file of at most {WORKLOAD_BYTES} bytes") from None
    except OSError as error:
        raise WorkloadFileError(str(path), None, f"cannot be read ({error.strerror})", expected) from None


def read_json_object(path: Path, expected: str) -> dict[str, Any]:
    """Return the object in a JSON file; :class:`WorkloadFileError` if there is none, saying what was ``expected``."""
    text = read_workload_text(path, expected)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadFileError(str(path), getattr(error, "lineno", None), "not JSON", expected) from None
    if not isinstance(given, dict):
        raise WorkloadFileError(str(path), None, "not a JSON object", expected)
    return given
