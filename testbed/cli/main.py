"""``testbed VERB ...``: find the verb's module, and turn every error into one line and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final, Protocol, cast

from testbed import ending_signals
from testbed.cli.completers import VARIABLE
from testbed.cli.parser import Parser
from testbed.errors import EXIT_BAD_INPUT, EXIT_FAILED, TestbedError
from testbed.machine.distribution import package_version
from topologies.limits import one_line
from topologies.table import TraceError
from workloads.plugin_errors import PluginError

VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "testbed.cli.run",
        "validate": "testbed.cli.validate",
        "plan": "testbed.cli.plan",
        "compare": "testbed.cli.compare",
        "report": "testbed.cli.report",
        "open": "testbed.cli.open",
        "sweep": "testbed.cli.sweep",
        "import": "testbed.cli.exchange.import_workload",
        "export": "testbed.cli.exchange.export",
        "list": "testbed.cli.discovery.list",
        "schedulers": "testbed.cli.discovery.schedulers",
        "init": "testbed.cli.discovery.init",
        "reproduce": "testbed.cli.reproduce",
        "doctor": "testbed.cli.doctor",
        "clean": "testbed.cli.clean",
        "schema": "testbed.cli.discovery.schema",
        "completion": "testbed.cli.discovery.completion",
    }
)
"""Verb -> its module, in the order of the help text. It is imported only when it is used, and imports what computes
only when it runs: the help text and the completion of a shell must not wait for numpy."""

_UNWRITABLE: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing; where files are written, their names come with them."""
DESCRIPTION: Final = "Packet-level emulation of communication scheduling in GPU training clusters."
STATUSES: Final = """exit status: 0 done and believable; 1 failed; 2 bad input or usage; 3 this machine cannot do it;
4 done, but the fidelity verdict is not ok; 5 done and believable, but a check of the scenario failed"""


class Verb(Protocol):
    """What the module of a verb offers."""

    NAME: str
    HELP: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: those of the process) and return the exit status."""
    _open_standard_streams()
    if VARIABLE in os.environ and arguments is None:
        _complete()
    with ending_signals.caught():
        return _carry_out(list(sys.argv[1:] if arguments is None else arguments))


def _complete() -> None:
    """Tell the shell that started this command how its line can go on, and end."""
    from argcomplete import autocomplete

    line = os.environ.get("COMP_LINE", "")
    autocomplete(build_parser(line.split()), always_complete_options=False)


def _carry_out(given: list[str]) -> int:
    debug = os.environ.get("TESTBED_DEBUG", "") not in ("", "0")
    try:
        try:
            parsed = build_parser(given).parse_args(given)
            debug = debug or parsed.debug
            status = cast(int, parsed.run(parsed))
        except SystemExit as done:  # argparse has printed its message
            status = done.code if isinstance(done.code, int) else EXIT_FAILED
        sys.stdout.flush()
        return status
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        return explain(error)


def build_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with all verbs, but with the arguments of only the verb in ``given``.

    Without a verb in ``given`` all are imported: the help text lists their ``HELP``.
    """
    parser = Parser(prog="testbed", description=DESCRIPTION, epilog=STATUSES, formatter_class=_Keep)
    parser.add_argument("--version", action="version", version=f"testbed {package_version() or '(not installed)'}")
    parser.set_defaults(debug=False)
    verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb")
    wanted = next((word for word in given if word in VERBS), None)
    for name, module in VERBS.items():
        if wanted not in (None, name):
            verbs.add_parser(name)
            continue
        verb = cast(Verb, import_module(module))
        sub = verbs.add_parser(name, help=verb.HELP, description=verb.HELP)
        sub.add_argument("--debug", action="store_true", help="show tracebacks (also: TESTBED_DEBUG=1)")
        verb.add_arguments(sub)
        sub.set_defaults(run=verb.run)
    return parser


class _Keep(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the epilog."""


def _open_standard_streams() -> None:
    """Streams that were closed before the start lead nowhere: no file that is opened later may take their place."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def explain(error: BaseException) -> int:
    """Print one line per error on standard error; return the exit status."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
        _give_up_output()
        if not isinstance(error, BrokenPipeError):  # whoever closes the pipe has read enough
            print(f"testbed: output cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED
    if isinstance(error, TestbedError):
        print("\n".join(one_line(line) for line in str(error).split("\n")), file=sys.stderr)
        return error.exit_status
    if isinstance(error, PluginError):
        print(one_line(str(error)), file=sys.stderr)
        return EXIT_FAILED
    if isinstance(error, TraceError):
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    if isinstance(error, ending_signals.EndedBySignalError):
        print(f"testbed: ended by {error}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("testbed: interrupted", file=sys.stderr)
    elif isinstance(error, MemoryError):
        print("testbed: out of memory", file=sys.stderr)
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        print(f"testbed: {error.filename}: {error.strerror}", file=sys.stderr)
    else:
        said = one_line(" ".join(str(error).split()))
        print(f"testbed: {type(error).__name__}: {said}; please report; details in {_log(error)}", file=sys.stderr)
    return EXIT_FAILED


def _give_up_output() -> None:
    """Write no more to standard output: Python would complain once more when it closes it."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _log(error: BaseException) -> str:
    """Write the traceback to a new file and return its name."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="testbed-", suffix=".log", delete=False) as file:
            traceback.print_exception(error, file=file)
            return file.name
    except OSError:
        return "the output of the same command with --debug"
