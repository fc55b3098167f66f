"""``python -m testbed``: goes on in the project's environment, whichever Python this is.

Standard library and old syntax only: Python 2.7 must get as far as starting the right one.
"""

import os
import signal
import sys

NEEDED = ("pydantic", "yaml", "numpy", "rich")
CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.path.join(CHECKOUT, ".venv")


def _go_on_in_environment():  # type: () -> None
    """Start again in the right Python, and without the current directory on the path: anyone may have written there."""
    python = os.path.join(ENVIRONMENT, "bin", "python")
    there = os.path.exists(os.path.join(ENVIRONMENT, "pyvenv.cfg")) and os.access(python, os.X_OK)
    if there and os.path.realpath(sys.prefix) != os.path.realpath(ENVIRONMENT):
        command = [python, "-P", "-m", "testbed"] + sys.argv[1:]  # noqa: RUF005
    elif getattr(sys.flags, "safe_path", True) or sys.flags.ignore_environment:
        return
    else:
        command = [sys.executable, "-P"] + sys.orig_argv[1:]  # noqa: RUF005
    given = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([CHECKOUT] + given))  # noqa: RUF005
    if sys.stdout is not None:
        sys.stdout.flush()
    os.execve(command[0], command, environment)


def _missing():  # type: () -> str
    if sys.version_info < (3, 11):
        return "Python 3.11 or newer (this is %d.%d)" % sys.version_info[:2]
    from importlib.util import find_spec

    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def start():  # type: () -> int
    """Run the command line as the user who called sudo, if one did; return the exit status."""
    # For other Pythons that are started from here on, such as the processes of a pool.
    os.environ["PYTHONSAFEPATH"] = "1"
    if os.geteuid() == 0 and "SUDO_UID" in os.environ:
        from testbed.machine.separation import give_up_root

        give_up_root(sys.argv[1:])
    if "TESTBED_LAUNCHER" in os.environ:
        from testbed.machine import launcher_requests

        launcher_requests.present()
    from testbed.cli.main import main

    return main()


def _start_here():  # type: () -> int
    _go_on_in_environment()
    missing = _missing()
    if missing:
        sys.stderr.write("testbed: missing %s: run 'make setup' in %s first\n" % (missing, CHECKOUT))
        return 3
    return start()


if __name__ == "__main__":
    status = 1
    try:
        status = _start_here()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # pressed once more while it was ending: all is said
        pass
    sys.exit(status)
