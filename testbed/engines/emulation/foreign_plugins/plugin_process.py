"""The process of a plug-in, seen from the run: started without privileges, asked one question at a time."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Final

from testbed.errors import RunFailedError
from testbed.machine.child_python import child_environment, python_module
from testbed.machine.privileges import plain_user, unprivileged

_MAIN: Final = "testbed.engines.emulation.foreign_plugins.plugin_main"


class PluginProcess:
    """A process that keeps ``what`` (said in errors); it ends with this one."""

    def __init__(self, kind: str, what: str) -> None:
        self._what = what
        self._process = subprocess.Popen(
            unprivileged(python_module(_MAIN, kind), plain_user()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return its answer; ``RunFailedError``, one line, if it has failed or ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            answer = None
        if not isinstance(answer, dict):
            raise RunFailedError(f"the process of {self._what} ended, or its answer is not understood")
        if "problem" in answer:
            raise RunFailedError(str(answer["problem"]))
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
