"""Commands and namespaces: every system call here names what was attempted when it fails."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
LIMIT_S = 60
"""A command that takes longer has failed."""
_LIBC = ctypes.CDLL(None, use_errno=True)


SHOWN = 500
"""Characters of an error's line at most."""


class CommandError(RuntimeError):
    """A command failed; the text names it and has its output, ``whole`` all that was asked and said."""

    def __init__(self, text: str, whole: str = "") -> None:
        super().__init__(shortened(text))
        self.whole = whole or text


def shortened(text: str, limit: int = SHOWN) -> str:
    """Return ``text`` on one line; what is longer than ``limit`` characters loses its middle."""
    line = " ".join(text.split())
    half = (limit - 5) // 2
    return line if len(line) <= limit else f"{line[:half]} ... {line[-half:]}"


def run_command(
    command: Sequence[str], *, text_input: str | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run ``command`` and return its standard output; ``CommandError`` if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, input=text_input, capture_output=True, text=True, env=environment, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise _failed(command, text_input, f"did not end within {LIMIT_S} s", "") from None  # its text has every word
    except OSError as error:
        raise _failed(command, text_input, f"cannot be run: {error.strerror or error}", "") from None
    if done.returncode != 0:
        raise _failed(
            command, text_input, f"ended with {done.returncode}", (done.stderr or done.stdout).strip() or "no message"
        )
    return done.stdout


def _failed(command: Sequence[str], text_input: str | None, how: str, said: str) -> CommandError:
    shown = [shortened(word, 40) for word in (command if len(command) <= 6 else [*command[:4], "...", *command[-2:]])]
    words = f": {shortened(said.splitlines()[0], 250)}" if said else ""
    whole = "\n".join((" ".join(command), text_input or "", how, said))
    return CommandError(f"{' '.join(shown)} {how}{words}", whole)


def run_batch(tool: str, lines: Iterable[str]) -> None:
    """Feed ``lines`` to ``ip -batch`` or ``tc -batch`` in the current network namespace."""
    text = "\n".join(lines)
    if not text:
        return
    try:
        run_command([tool, "-batch", "-"], text_input=text + "\n")
    except CommandError as error:
        raise CommandError(f"{error}{_named_line(str(error), text)}", error.whole) from None


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
