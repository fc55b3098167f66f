"""What goes wrong in a plug-in, in one line that names the plug-in, its file and the line."""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass


class PluginError(Exception):
    """A plug-in raised, or returned what cannot be carried out; ``str`` of it is one line, its cause what was raised.

    The line reads ``file:line: kind name raised ...``, or ``... returned ...``.
    """


@dataclass(frozen=True, slots=True)
class PluginCode:
    """The code of the plug-in ``name`` of some ``kind``, such as scheduler; ``package``: first name of its modules."""

    kind: str
    name: str
    package: str

    @contextlib.contextmanager
    def guarded(self, function: object) -> Iterator[None]:
        """Call ``function`` of the plug-in under this: what it raises becomes a :class:`PluginError`.

        What it prints goes to standard error: standard output belongs to the command, which may write JSON there.
        """
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        except PluginError:
            raise
        except (Exception, SystemExit) as error:  # another package may raise anything
            raise self.raised(error, function) from error

    def raised(self, error: BaseException, function: object) -> PluginError:
        """Return the line for what ``function`` raised: at the innermost line of the plug-in, where there is one."""
        where = place_of(error, self.package) or definition_of(function)
        return PluginError(f"{where}{self.kind} {self.name} raised {said_by(error)}")

    def returned(self, problem: str, function: object) -> PluginError:
        """Return the line for what ``function`` returned, where it is defined: nothing says which line was wrong."""
        return PluginError(f"{definition_of(function)}{self.kind} {self.name} {problem}")


def said_by(error: BaseException) -> str:
    """Return type and message of ``error`` on one line."""
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_of(error: BaseException, package: str) -> str:
    """Return ``file:line: `` of the innermost code of ``package`` that ``error`` passed; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    places = [
        f"{frame.f_code.co_filename}:{line}: "
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _belongs(frame.f_globals.get("__name__"), package)
    ]
    return places[-1] if places else ""


def definition_of(function: object) -> str:
    """Return ``file:line: `` where ``function`` begins, or the class of what is no function; empty if unknown."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}: "
    subject = function if inspect.isclass(function) else type(function)
    with contextlib.suppress(OSError, TypeError):
        return f"{inspect.getsourcefile(subject)}:{inspect.getsourcelines(subject)[1]}: "
    return ""


def _belongs(module: object, package: str) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == package
