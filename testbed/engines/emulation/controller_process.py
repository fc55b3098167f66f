"""The controller of a run: a process of its own, asked over its REST interface on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from controller.decision import Measured
from controller.service.json_codec import decode, encode
from controller.service.messages import (
    CommitAnswer,
    CommitRequest,
    DecisionAnswer,
    ErrorAnswer,
    FabricAnswer,
    JobRequest,
    ObservedPathsAnswer,
    ProfileRequest,
    StateAnswer,
    ThroughputAnswer,
    VerificationAnswer,
    VerificationRequest,
)
from testbed.errors import RunFailedError
from testbed.machine.child_python import module_path, python_module
from testbed.machine.privileges import plain_user, unprivileged
from topologies.fabric import Fabric
from workloads.job import Job

OPENFLOW_PORT = 6653
REST_PORT = 8080
_START_S = 30.0
_ANSWER_S = 60.0
_LOG = 2
_TAIL = 4096

T = TypeVar("T")


class ControllerProcess:
    """``python -m controller`` in the run's namespaces.

    It runs schedulers of other packages, and needs no privilege for anything: it has none.
    """

    def __init__(self, scheduler: str, options: Mapping[str, object], levels: int, seed: int) -> None:
        self._arguments = [
            "--scheduler",
            scheduler,
            "--levels",
            str(levels),
            "--seed",
            str(seed),
            "--openflow-port",
            str(OPENFLOW_PORT),
            "--rest-port",
            str(REST_PORT),
        ]
        for name, value in options.items():
            self._arguments += ["--option", f"{name}={json.dumps(value)}"]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def openflow_target(self) -> str:
        """Where switches connect, as Open vSwitch spells it."""
        return f"tcp:127.0.0.1:{OPENFLOW_PORT}"

    @property
    def pid(self) -> int | None:
        """Process id, once started."""
        return self._process.pid if self._process else None

    async def spawn(self) -> None:
        """Start the process; :meth:`ready` waits until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            *unprivileged(python_module("controller", *self._arguments), plain_user()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": module_path()},
        )

    async def ready(self) -> None:
        """Wait for the line that says it listens; ``RunFailedError`` with its last output if it does not."""
        assert self._process is not None and self._process.stdout is not None
        try:
            while True:
                line = await asyncio.wait_for(self._process.stdout.readline(), _START_S)
                if line.startswith(b"controller ready"):
                    return
                if not line:
                    raise RunFailedError(f"the controller did not start: {_last_words()}")
        except TimeoutError as error:
            raise RunFailedError(f"the controller was not ready after {_START_S:.0f} s") from error

    async def set_fabric(self, fabric: Fabric) -> FabricAnswer:
        """Tell the controller the fabric."""
        return await _ask(FabricAnswer, "PUT", "/fabric", fabric)

    async def wait_for_switches(self, names: Sequence[str]) -> None:
        """Wait until every switch is connected."""
        deadline = asyncio.get_running_loop().time() + _START_S
        while True:
            state = await _ask(StateAnswer, "GET", "/state")
            missing = [name for name in names if not state.switches.get(name)]
            if not missing:
                return
            if asyncio.get_running_loop().time() > deadline:
                raise RunFailedError(f"switch {missing[0]} did not connect to the controller within {_START_S:.0f} s")
            await asyncio.sleep(0.02)

    async def arrive(self, job: Job, *, prepare: bool) -> DecisionAnswer:
        """Announce a job; the answer holds the decision and which running flows must change."""
        return await _ask(DecisionAnswer, "POST", "/jobs", JobRequest(job, "prepare" if prepare else "now"))

    async def depart(self, job: str, *, prepare: bool) -> DecisionAnswer:
        """Take a job away; the answer is as for :meth:`arrive`."""
        return await _ask(DecisionAnswer, "DELETE", f"/jobs/{job}?apply={'prepare' if prepare else 'now'}")

    async def profiled(self, job: str, measured: Measured) -> DecisionAnswer:
        """Hand in a measured profile; the answer is as for :meth:`arrive`, to be carried out in steps."""
        return await _ask(DecisionAnswer, "POST", "/profiles", ProfileRequest(job, measured, "prepare"))

    async def tell_throughput(self, shares: Mapping[str, float]) -> ThroughputAnswer:
        """Hand in how fast jobs are beside what they would be alone."""
        return await _ask(ThroughputAnswer, "PUT", "/throughput", shares)

    async def commit(self, flows: Sequence[str]) -> CommitAnswer:
        """Flip the first switch of ``flows``, whose senders hold still."""
        return await _ask(CommitAnswer, "POST", "/commit", CommitRequest(tuple(flows)))

    async def verification(self, counters: Mapping[str, Mapping[str, int]] | None = None) -> VerificationAnswer:
        """What on the switches is not as decided, and the packets counted along each flow's path.

        ``counters`` (switch -> five-tuple -> packets) are used in place of the switches' own.
        """
        if counters is None:
            return await _ask(VerificationAnswer, "GET", "/verification")
        return await _ask(VerificationAnswer, "POST", "/verification", VerificationRequest(counters))

    async def observed_paths(self) -> ObservedPathsAnswer:
        """Paths read back from switches that chose for themselves (``ecmp-switch``)."""
        return await _ask(ObservedPathsAnswer, "GET", "/observed-paths")

    async def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


def _last_words() -> str:
    """The last line of the run's log, which is this process's standard error, too."""
    try:
        end = os.fstat(_LOG).st_size
        text = os.pread(_LOG, _TAIL, max(0, end - _TAIL)).decode("utf-8", "replace")
    except OSError:
        text = ""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


async def _ask(kind: type[T], method: str, path: str, body: object = None) -> T:
    """Ask the controller; ``RunFailedError`` with its own message if it refuses."""
    return await asyncio.to_thread(_request, kind, method, path, body)


def _request(kind: type[T], method: str, path: str, body: object) -> T:
    connection = http.client.HTTPConnection("127.0.0.1", REST_PORT, timeout=_ANSWER_S)
    try:
        text = None if body is None else json.dumps(encode(body))
        connection.request(method, path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status >= 400:
            raise RunFailedError(decode(ErrorAnswer, answer, "answer").error)
        return decode(kind, answer, "answer")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RunFailedError(f"the controller did not answer {method} {path}: {error}") from error
    finally:
        connection.close()
