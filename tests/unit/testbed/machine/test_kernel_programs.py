"""Whether a machine's kernel takes programs, told from what shows without trying."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import pytest

from testbed.machine import kernel_programs
from testbed.machine.kernel_programs import missing_for_programs


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has all of it."""
    (tmp_path / "vmlinux").touch()
    monkeypatch.setattr(kernel_programs, "BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(platform, "release", lambda: "6.18.44-lab")
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())


def test_a_machine_that_has_all_of_it_lacks_nothing() -> None:
    assert missing_for_programs() == ""


@pytest.mark.parametrize("release", ["6.3.9", "5.15.0-92-generic", "strange"])
def test_an_old_kernel_is_named(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    assert missing_for_programs() == f"kernel {release} is older than 6.4"


def test_a_kernel_that_does_not_describe_its_types_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel_programs, "BTF", tmp_path / "nothing")
    assert "CONFIG_DEBUG_INFO_BTF" in missing_for_programs()


def test_a_missing_library_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> object:
        raise OSError("no such file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert missing_for_programs() == "there is no libbpf.so.1 (Debian: libbpf1)"
