"""The errors a user can meet, each with its exit status (DESIGN: one clear line, never a traceback)."""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_CANNOT = 3
EXIT_NOT_BELIEVABLE = 4
EXIT_CHECK_FAILED = 5


class TestbedError(Exception):
    """Base of all errors that end a command; ``str(error)`` is what the user reads, one line per error."""

    exit_status: ClassVar[int] = EXIT_FAILED
    __test__ = False


class RunFailedError(TestbedError):
    """The run began and could not be brought to its end."""

    exit_status = EXIT_FAILED


class BadInputError(TestbedError):
    """The scenario, an option or a file is wrong; each line reads ``file:line: what is wrong, what was expected``."""

    exit_status = EXIT_BAD_INPUT


class CannotRunError(TestbedError):
    """This machine cannot do it: not root, a capability missing, another run in progress."""

    exit_status = EXIT_CANNOT
