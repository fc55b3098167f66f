"""The programs for the kernel are those of the sources beside them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import topologies.mininet_adapter.bpf as package

HERE = Path(package.__file__).parent


def test_the_objects_were_compiled_from_todays_sources() -> None:
    """Where this fails: ``make bpf``, and commit what it makes."""
    noted = dict(reversed(line.split("  ")) for line in (HERE / "objects/sources.sha256").read_text().splitlines())
    today = {
        f"sources/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in (HERE / "sources").iterdir()
    }
    assert noted == today


def test_every_program_has_an_object_without_paths_of_the_machine_that_compiled_it() -> None:
    for source in (HERE / "sources").glob("*.bpf.c"):
        made = (HERE / "objects" / f"{source.stem}.o").read_bytes()
        assert made[:4] == b"\x7fELF" and b"GPL" in made
        named = re.findall(rb"\0(/[^\0]*\.[ch])(?=\0)", made)
        assert [name for name in named if not name.startswith(b"/usr/include/")] == []
