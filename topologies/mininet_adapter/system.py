"""Commands and namespaces: every system call here names what was attempted when it fails."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class CommandError(RuntimeError):
    """A command failed; the text names it and has its output."""


def run_command(
    command: Sequence[str], *, text_input: str | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run ``command`` and return its standard output; ``CommandError`` if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, input=text_input, capture_output=True, text=True, env=environment, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CommandError(f"{' '.join(command[:6])} ended with {done.returncode}: {said[0] if said else 'no message'}")
    return done.stdout


def run_batch(tool: str, lines: Iterable[str]) -> None:
    """Feed ``lines`` to ``ip -batch`` or ``tc -batch`` in the current network namespace."""
    text = "\n".join(lines)
    if not text:
        return
    try:
        run_command([tool, "-batch", "-"], text_input=text + "\n")
    except CommandError as error:
        raise CommandError(f"{error}{_named_line(str(error), text)}") from error


def _named_line(message: str, text: str) -> str:
    """The batch line that ``ip`` or ``tc`` only gives the number of."""
    _, _, tail = message.rpartition(":")
    number = tail.strip()
    lines = text.split("\n")
    return f" ({lines[int(number) - 1]})" if number.isdigit() and 0 < int(number) <= len(lines) else ""


@contextmanager
def network_namespace_of(pid: int) -> Iterator[None]:
    """Enter the network namespace of process ``pid`` for the context: this thread, and commands it starts."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(there, f"namespace of process {pid}")
        yield
    finally:
        _enter(home, "own namespace")
        os.close(there)
        os.close(home)


def _enter(descriptor: int, name: str) -> None:
    if _LIBC.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter the network {name}")


def write_sysctls(settings: Mapping[str, str]) -> dict[str, str]:
    """Write those ``settings`` that this kernel has, in the current namespace; return what they now read."""
    read_back: dict[str, str] = {}
    for name, value in settings.items():
        path = Path("/proc/sys") / name.replace(".", "/")
        if path.exists():
            path.write_text(value)
            read_back[name] = path.read_text().strip()
    return read_back


def tcp_counter(pid: int, name: str) -> int:
    """The extended TCP counter ``name`` of the network namespace of process ``pid``."""
    lines = Path(f"/proc/{pid}/net/netstat").read_text().splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if names.startswith("TcpExt:"):
            return int(dict(zip(names.split(), values.split(), strict=True))[name])
    raise KeyError(name)
