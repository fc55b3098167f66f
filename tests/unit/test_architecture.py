"""Rules of the source tree that import-linter cannot express; the others are in pyproject.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from configparser import ConfigParser
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from controller.schedulers import registry as schedulers

ROOT = Path(__file__).parents[2]
ROOMS = ("topologies", "workloads", "controller", "testbed")
SOURCES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
SCRIPTS = sorted(path.relative_to(ROOT) for path in (ROOT / "benchmarks").rglob("*.py"))

KERNEL = {"socket", "fcntl", "ctypes", "pyroute2"}
"""What reaches into the kernel beyond files and child processes."""

ADAPTERS = (
    "topologies/mininet_adapter/",
    "workloads/worker/",
    "workloads/opener/",
    "controller/dataplane/ryu_app.py",
    "controller/dataplane/ryu_compat.py",
    "controller/service/rest.py",
    "controller/service/server.py",
    "controller/__main__.py",
    "testbed/client/",
    "testbed/engines/emulation/",
    "testbed/machine/capabilities.py",
    "testbed/machine/file_lock.py",
    "testbed/machine/kernel_programs.py",
    "testbed/machine/launcher_requests.py",
    "testbed/machine/process_pool.py",
    "testbed/machine/separation.py",
    "testbed/watch/server.py",
    "testbed/watch/server_process.py",
)


def text_of(source: Path) -> str:
    return (ROOT / source).read_text("utf-8")


def tree_of(source: Path) -> ast.Module:
    return ast.parse(text_of(source), str(source))


def imports_of(source: Path) -> set[str]:
    """First names of everything that a module imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def functions_of(source: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_only_adapters_touch_the_kernel() -> None:
    pure = [source for source in SOURCES if not str(source).startswith(ADAPTERS)]
    assert [(str(source), reach) for source in pure if (reach := imports_of(source) & KERNEL)] == []


def test_imports_are_never_relative() -> None:
    relative = [
        f"{source}:{node.lineno}"
        for source in SOURCES
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_modules_fit_in_400_lines_and_functions_in_60() -> None:
    assert [str(source) for source in SOURCES if len(text_of(source).splitlines()) > 400] == []
    assert [f"{source}:{f.name}" for source in SOURCES for f in functions_of(source) if length(f) > 60] == []


def test_no_folder_holds_more_than_15_modules() -> None:
    folders = Counter(source.parent for source in SOURCES if source.name != "__init__.py")
    assert [f"{folder}: {count}" for folder, count in folders.items() if count > 15] == []


def modules_imported_by(source: Path) -> set[Path]:
    """The modules of the four rooms that ``source`` imports, at its top or inside a function."""
    found: set[Path | None] = set()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            found |= {module_named(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {module_named(f"{node.module}.{alias.name}") or module_named(node.module) for alias in node.names}
    return {path for path in found if path is not None and path != source}


def module_named(name: str) -> Path | None:
    path = Path(*name.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if (ROOT / each).exists()), None)


def test_no_module_imports_itself_through_others() -> None:
    assert cycle_of({source: modules_imported_by(source) for source in SOURCES}) == ""


def cycle_of(imports: Mapping[Path, set[Path]]) -> str:
    """A chain of modules that import each other, the first one last again; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return " -> ".join(map(str, error.args[1]))
    return ""


def test_a_chain_of_imports_that_ends_where_it_began_is_named() -> None:
    one, other = Path("one.py"), Path("other.py")
    assert cycle_of({one: {other}, other: {one}}) in ("one.py -> other.py -> one.py", "other.py -> one.py -> other.py")
    assert cycle_of({one: {other}, other: set()}) == ""


def test_nothing_is_left_for_later() -> None:
    assert [str(source) for source in SOURCES if re.search(r"\b(TO-?DO|FIX-?ME|X{3})\b", text_of(source))] == []


def test_nothing_is_unpickled_or_evaluated() -> None:
    """What is read becomes values by its form, never by code in it."""
    found = [
        (str(source), reach) for source in SOURCES if (reach := imports_of(source) & {"pickle", "marshal", "shelve"})
    ]
    assert found == []


def test_the_module_search_path_is_left_alone() -> None:
    assert [str(source) for source in (*SOURCES, *SCRIPTS) if re.search(r"\bsys\.path\b", text_of(source))] == []


def metadata() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_every_built_in_scheduler_is_registered_once_by_its_own_name() -> None:
    assert len({scheduler.name for scheduler in schedulers.BUILT_IN}) == len(schedulers.BUILT_IN) >= 16
    assert [each for each in schedulers.BUILT_IN if type(schedulers.create(each.name)) is not each] == []


def test_what_is_built_in_is_registered_in_code_only() -> None:
    assert set(metadata()["options.entry_points"]) == {"console_scripts", "pytest11"}


def test_every_room_says_that_it_is_typed() -> None:
    assert [room for room in ROOMS if not (ROOT / room / "py.typed").exists()] == []


def test_the_stated_minimum_python_is_the_one_that_is_checked() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    required = metadata()["options"]["python_requires"].removeprefix(">=")
    assert tools["mypy"]["python_version"] == required
    assert tools["ruff"]["target-version"] == "py" + required.replace(".", "")
