"""The digest of sources: what tells apart two states of the code of one version."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.machine.distribution import sources_digest


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "changing_package" / "inner"
    folder.mkdir(parents=True)
    for each in (folder.parent, folder):
        (each / "__init__.py").write_text("")
    (folder / "rates.py").write_text("SHARE = 0.5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [each for each in sys.modules if each.startswith("changing_package")]:
        del sys.modules[name]


def digest() -> str:
    sources_digest.cache_clear()
    return sources_digest("changing_package")


def test_the_same_sources_have_the_same_digest(package: Path) -> None:
    before = digest()
    (package / "notes.txt").write_text("no code")
    assert digest() == before


def test_another_line_or_another_name_is_other_code(package: Path) -> None:
    found = [digest()]
    (package / "rates.py").write_text("SHARE = 0.6\n")
    found.append(digest())
    (package / "rates.py").rename(package / "speeds.py")
    found.append(digest())
    (package / "scenario.yaml").write_text("jobs: []\n")
    found.append(digest())
    assert len(set(found)) == 4


def test_packages_are_told_apart(package: Path) -> None:
    assert sources_digest("changing_package") != sources_digest("changing_package", "testbed.fluid")
