"""``testbed init WHAT [PATH]``: a commented scenario, scheduler or manager policy to start from; it runs as it is."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testbed.errors import EXIT_OK, BadInputError, RunFailedError

NAME = "init"
HELP = "write a commented scenario, scheduler or manager to start from; it runs as it is"
KINDS: Final = ("scenario", "scheduler", "manager")
SCHEMA: Final = "scenario.schema.json"
_NEXT: Final[Mapping[str, str]] = {
    "scheduler": "testbed run hello --engine flow --scheduler ecmp --scheduler {name}",
    "manager": "testbed run arrivals --engine flow --set 'manager={{policy: {name}}}'",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to write, and where."""
    parser.add_argument("what", metavar="WHAT", choices=KINDS, help=f"one of {', '.join(KINDS)}")
    default = "the file of a scenario (default: my_scenario.yaml), or the directory of a package (my_scheduler)"
    parser.add_argument("path", metavar="PATH", type=Path, nargs="?", help=default)


def run(arguments: argparse.Namespace) -> int:
    """Write the files, none of which may exist, and print them and what to do next."""
    if arguments.what == "scenario":
        _scenario(arguments.path or Path("my_scenario.yaml"))
    else:
        _package(arguments.what, arguments.path or Path(f"my_{arguments.what}"))
    return EXIT_OK


def _scenario(path: Path) -> None:
    from testbed.cli.discovery.starters import scenario

    if path.suffix not in (".yaml", ".yml"):
        raise BadInputError(f"{path}: expected a file name that ends with .yaml")
    files = {path: scenario(path)}
    schema = path.parent / SCHEMA
    if not schema.exists():  # one schema serves all scenarios of a directory
        from testbed.scenario import json_schema

        files[schema] = f"{json.dumps(json_schema(), indent=2)}\n"
    _write(files)
    print(f"next: testbed run {path} --engine flow")


def _package(kind: str, directory: Path) -> None:
    from testbed.cli.discovery.starters import names_of, package

    names = names_of(kind, directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadInputError(f"{directory}: exists, expected a new or empty directory: nothing is overwritten")
    _write({directory / name: text for name, text in package(kind, names).items()})
    print(f"next: {_python()} -m pip install -e {directory}")
    print(f"then: {_NEXT[kind].format(name=names.name)}")


def _python() -> str:
    """The Python of this command, which must have the package, by a path that is short to type."""
    relative = os.path.relpath(sys.executable)
    return relative if len(relative) < len(sys.executable) else sys.executable


def _write(files: Mapping[Path, str]) -> None:
    """Write new files and print their names; one that exists is left as it is, and nothing is written."""
    for path in files:
        if path.exists() or path.is_symlink():
            raise BadInputError(f"{path}: exists, expected a new file: nothing is overwritten")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise RunFailedError(f"{path}: cannot be written: {error.strerror or error}") from error
        print(path)
