"""``testbed completion SHELL``: the script by which a shell completes this command's verbs, options and names."""

from __future__ import annotations

import argparse
from typing import Final

from testbed.errors import EXIT_OK

NAME = "completion"
SHELLS: Final = ("bash", "zsh", "fish")
HELP = f"print the script by which a shell completes this command: {', '.join(SHELLS)}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the script; the shell reads it, and from then on asks ``testbed`` what may come next."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["testbed"], shell=arguments.shell))
    return EXIT_OK
