"""The tutorial as steps: commands and files in the order of its pages, and a shell that carries them out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "tutorial" / f"{name}.md" for name in ("first-run", "scenario", "scheduler", "packets")]
BLOCK = re.compile(r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """What a reader types, and the lines that the page shows below it."""

    page: str
    line: str
    shown: tuple[str, ...]

    @property
    def needs_root(self) -> bool:
        """Whether the page runs it with sudo."""
        return self.line.startswith("sudo ")


@dataclass(frozen=True)
class File:
    """What a reader writes."""

    page: str
    path: str
    text: str


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    command: Command
    status: int
    output: str

    def lacks(self) -> list[str]:
        """The words that the page shows and the command did not print."""
        printed = set(self.output.split())
        return [word for line in self.command.shown for word in line.split() if word not in printed]


def _commands(page: str, text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        yield Command(page, line, tuple(shown))


def steps(page: Path) -> Iterator[Command | File]:
    """The steps of a page; ``ValueError`` for a block that is neither commands nor a file with its name."""
    for block in BLOCK.finditer(page.read_text("utf-8")):
        kind, title, text = block["kind"], block["title"], block["text"]
        if kind == "console" and text.startswith("$ "):
            yield from _commands(page.name, text)
        elif kind in ("yaml", "python", "toml") and title:
            yield File(page.name, title, text)
        else:
            raise ValueError(f"{page.name}: a block that is neither commands ($) nor a file with a title:\n{text}")


def repository(place: Path) -> Path:
    """The working tree as a repository to clone, changes that are not committed included."""
    ignored = shutil.ignore_patterns(".*", "runs", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, place, ignore=ignored)
    identity = ["-c", "user.name=tutorial", "-c", "user.email=tutorial@localhost"]
    for arguments in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True)
    return place


def dependencies(place: Path) -> Path:
    """The packages of this environment, the testbed itself excepted: what pip would fetch over the network."""
    place.mkdir()
    folders = [Path(found) for found in sys.path if Path(found).name in ("site-packages", "dist-packages")]
    for entry in (entry for folder in folders for entry in folder.iterdir()):
        editable = (entry / "direct_url.json").exists()
        if not editable and not entry.name.startswith(("__editable__", "pip")) and not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)
    return place


def environment(place: Path) -> dict[str, str]:
    """What a reader's shell has: the address of the repository, a Python, and packages that need no network."""
    tools = place / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(Path(sys.executable).resolve())
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("PYTHON")},
        "REPOSITORY": str(repository(place / "repository")),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(dependencies(place / "dependencies")),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of build-isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _script(found: Sequence[Command | File], notes: Path, after: Callable[[Command], str]) -> Iterator[str]:
    if os.geteuid() == 0:
        yield 'sudo() { "$@"; }'  # who is root needs none, and a container has none
    for number, step in enumerate(found):
        if isinstance(step, File):
            (notes / f"{number}.file").write_text(step.text, "utf-8")
            yield f"cp {shlex.quote(str(notes / f'{number}.file'))} {shlex.quote(step.path)} || exit"
            continue
        yield f"{{ {step.line}\n}} >{notes}/{number}.output 2>&1 </dev/null"
        yield f"echo $? >{notes}/{number}.status"
        yield after(step)


def follow(
    found: Sequence[Command | File], place: Path, *, after: Callable[[Command], str] = lambda command: ""
) -> list[Done]:
    """Carry out the steps in one shell that begins in an empty directory; ``after`` adds lines behind a command."""
    notes, empty = place / "notes", place / "empty"
    notes.mkdir()
    empty.mkdir()
    script = "\n".join(_script(found, notes, after))
    ended = subprocess.run(["bash", "-c", script], cwd=empty, env=environment(place), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return [
        Done(step, int((notes / f"{number}.status").read_text()), (notes / f"{number}.output").read_text("utf-8"))
        for number, step in enumerate(found)
        if isinstance(step, Command)
    ]
