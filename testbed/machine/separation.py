"""``sudo testbed VERB``: the command goes on with the rights of the user who called sudo, and asks for what needs root.

So what a run writes belongs to that user and honours the umask, and reports, scenarios and packages with schedulers are
read with the user's rights. For verbs that emulate, :mod:`testbed.engines.emulation.privileged.launcher` stays root
beside it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from testbed.machine import launcher_requests
from testbed.machine.child_python import PACKAGES, child_environment, python_module
from testbed.machine.privileges import User, may_read, sudo_user, unprivileged

_LAUNCHER: Final = "testbed.engines.emulation.privileged.launcher"
_EMULATING: Final = frozenset({"run", "plan", "sweep", "reproduce"})
_ROOT_ONLY: Final = frozenset({"clean", "doctor"})
"""``clean`` ends processes of any user, ``doctor`` looks at what root can do here."""


def give_up_root(arguments: Sequence[str]) -> None:
    """Start this command again as the user who called sudo, in place of this process; return if there is none.

    It goes on as root where that user could not read the code or enter the current directory, and for the verbs
    that look after the machine.
    """
    user, verb = sudo_user(), next((word for word in arguments if not word.startswith("-")), "")
    if user is None or verb in _ROOT_ONLY or shutil.which("setpriv") is None:
        return
    if not may_read(user, [PACKAGES / "testbed" / "__init__.py", sys.executable, Path.cwd()]):
        return
    environment = child_environment(**_home(user))
    if verb in _EMULATING:
        environment[launcher_requests.PLACE] = str(_start_launcher())
    command = unprivileged(python_module("testbed", *arguments), user)
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)


def _home(user: User) -> dict[str, str]:
    return {"HOME": user.home, **({"USER": user.name, "LOGNAME": user.name} if user.name else {})}


def _start_launcher() -> int:
    """Start the launcher, which goes on as root; return the descriptor by which this process can ask it."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            python_module(_LAUNCHER, str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=child_environment(),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    mine.set_inheritable(True)
    return mine.detach()
