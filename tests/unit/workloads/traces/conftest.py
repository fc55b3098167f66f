"""Small files of the public formats, made by the tests themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Writer = Callable[[str, str], Path]


@pytest.fixture
def written(tmp_path: Path) -> Writer:
    """Writes text to a file of that name and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return path

    return write
