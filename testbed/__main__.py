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
    python = os.path.join(ENVIRONMENT, "bin", "python")
    if not os.path.exists(os.path.join(ENVIRONMENT, "pyvenv.cfg")) or not os.access(python, os.X_OK):
        return
    if os.path.realpath(sys.prefix) != os.path.realpath(ENVIRONMENT):
        sys.stdout.flush()
        os.execv(python, [python, "-m", "testbed"] + sys.argv[1:])  # noqa: RUF005


def _missing():  # type: () -> str
    if sys.version_info < (3, 11):
        return "Python 3.11 or newer (this is %d.%d)" % sys.version_info[:2]
    from importlib.util import find_spec

    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def _start():  # type: () -> int
    _go_on_in_environment()
    missing = _missing()
    if missing:
        sys.stderr.write("testbed: missing %s: run 'make setup' in %s first\n" % (missing, CHECKOUT))
        return 3
    from testbed.cli.main import main

    return main()


if __name__ == "__main__":
    status = 1
    try:
        status = _start()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # pressed once more while it was ending: all is said
        pass
    sys.exit(status)
