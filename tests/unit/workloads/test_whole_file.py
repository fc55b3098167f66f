"""A file is written whole or not at all, with the permissions that are asked for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workloads.whole_file import write_whole


@pytest.mark.parametrize(("mode", "found"), [(None, 0o640), (0o600, 0o600), (0o644, 0o644)])
def test_a_file_has_the_permissions_asked_for_or_those_of_the_umask(
    tmp_path: Path, mode: int | None, found: int
) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", "text", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == found


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "after\r\n\ud800")
    assert (tmp_path / "target").read_text() == "before"
    assert (tmp_path / "link").read_bytes() == b"after\r\n\\ud800" and not (tmp_path / "link").is_symlink()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
