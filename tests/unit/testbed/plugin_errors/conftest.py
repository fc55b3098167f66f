"""The package ``faulty``, installed as pip would: its module on the path, and metadata with its entry points."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_GROUPS = {
    "Queue": "queues",
    "Policy": "policies",
    "Placer": "placers",
    "Scheduler": "schedulers",
    "Wrong": "schedulers",
}


def entry_points() -> str:
    """An entry point for each class and function of the module, called like it: ``LevelTooLow`` is level-too-low."""
    points: dict[str, list[str]] = {}
    for node in ast.parse((HERE / "faulty.py").read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name != "Wrong":
            bases = [ast.unparse(base) for base in node.bases]
            group = _GROUPS[bases[0]] if bases else "schedulers"
        elif isinstance(node, ast.FunctionDef):
            group = "fabrics"
        else:
            continue
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", node.name).lower()
        points.setdefault(group, []).append(f"{name} = faulty:{node.name}")
    return "\n".join(f"[testbed.{group}]\n" + "\n".join(lines) for group, lines in points.items()) + "\n"


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ``PYTHONPATH`` with which a process has the package; this one has it too."""
    metadata = tmp_path / "installed" / "faulty-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(entry_points(), "utf-8")
    for folder in (HERE, metadata.parent):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "faulty", raising=False)
    return f"{HERE}:{metadata.parent}"
