"""The controller of a run: a process of its own, asked over its REST interface on a Unix socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from controller.decision import Measured
from controller.service.json_codec import decode, encode
from controller.service.messages import (
    CommitAnswer,
    CommitRequest,
    DecisionAnswer,
    ErrorAnswer,
    FabricAnswer,
    JobRequest,
    LinkRequest,
    ObservedPathsAnswer,
    ProfileRequest,
    StateAnswer,
    ThroughputAnswer,
    ThroughputRequest,
    VerificationAnswer,
    VerificationRequest,
)
from testbed.engines.emulation.namespaces.liveness import ended_how
from testbed.errors import RunFailedError
from testbed.machine.child_python import child_environment, python_module
from testbed.machine.privileges import plain_user, unprivileged
from topologies.fabric import Fabric
from workloads.job import Job

OPENFLOW_PORT = 6653
_START_S = 30.0
_ANSWER_S = 60.0
_PER_CONNECTION_S = 0.02
"""An answer about so many connections may take so much longer."""
_LOG = 2
_TAIL = 4096

T = TypeVar("T")


class ControllerProcess:
    """``python -m controller`` in the run's namespaces; its REST interface is the Unix socket ``rest``.

    It runs schedulers of other packages, and needs no privilege for anything: it has none.
    """

    def __init__(
        self, scheduler: str, options: Mapping[str, object], levels: int, seed: int, rest: Path, *, spread: bool = False
    ) -> None:
        """``spread``: packets of a flow take all of its paths."""
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
            "0",
            "--rest-socket",
            str(rest),
            *(["--spread"] if spread else []),
        ]
        for name, value in options.items():
            self._arguments += ["--option", f"{name}={json.dumps(value)}"]
        self._rest = rest
        self._process: asyncio.subprocess.Process | None = None
        self._connections = 0

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
        user = plain_user()
        self._rest.parent.mkdir(parents=True, exist_ok=True)
        if user is not None:
            os.chown(self._rest.parent, user.uid, user.gid)
        self._process = await asyncio.create_subprocess_exec(
            *unprivileged(python_module("controller", *self._arguments), user),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(),
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
        return await self._ask(FabricAnswer, "PUT", "/fabric", fabric)

    async def set_switches(self, switches: Sequence[str]) -> FabricAnswer:
        """Say which switches of the fabric are built, if those are not all."""
        return await self._ask(FabricAnswer, "PUT", "/switches", list(switches))

    async def wait_for_switches(self, names: Sequence[str]) -> None:
        """Wait until every switch is connected."""
        deadline = asyncio.get_running_loop().time() + _START_S
        while True:
            state = await self._ask(StateAnswer, "GET", "/state")
            missing = [name for name in names if not state.switches.get(name)]
            if not missing:
                return
            if asyncio.get_running_loop().time() > deadline:
                raise RunFailedError(f"switch {missing[0]} did not connect to the controller within {_START_S:.0f} s")
            await asyncio.sleep(0.02)

    async def arrive(self, job: Job, *, prepare: bool) -> DecisionAnswer:
        """Announce a job; the answer holds the decision and which running flows must change."""
        self._connections += len(job.flows)
        return await self._ask(DecisionAnswer, "POST", "/jobs", JobRequest(job, "prepare" if prepare else "now"))

    async def reconnected(self, job: Job) -> DecisionAnswer:
        """A real program has other connections; the answer is as for :meth:`arrive`, to be carried out in steps."""
        path = f"/jobs/{quote(job.name, safe='')}"
        return await self._ask(DecisionAnswer, "PUT", path, JobRequest(job, "prepare"))

    async def depart(self, job: str, *, prepare: bool) -> DecisionAnswer:
        """Take a job away; the answer is as for :meth:`arrive`."""
        path = f"/jobs/{quote(job, safe='')}?apply={'prepare' if prepare else 'now'}"
        return await self._ask(DecisionAnswer, "DELETE", path)

    async def profiled(self, job: str, measured: Measured) -> DecisionAnswer:
        """Hand in a measured profile; the answer is as for :meth:`arrive`, to be carried out in steps."""
        return await self._ask(DecisionAnswer, "POST", "/profiles", ProfileRequest(job, measured, "prepare"))

    async def links_changed(self, links: Sequence[str], *, down: bool) -> DecisionAnswer:
        """Cables failed or work again; the answer is as for :meth:`arrive`, to be carried out in steps."""
        request = LinkRequest(links[0], "down" if down else "up", "prepare", tuple(links[1:]))
        return await self._ask(DecisionAnswer, "POST", "/links", request)

    async def tell_throughput(self, shares: Mapping[str, float]) -> ThroughputAnswer:
        """Hand in how fast jobs are beside what they would be alone."""
        return await self._ask(ThroughputAnswer, "PUT", "/throughput", shares)

    async def throughput_measured(self, shares: Mapping[str, float]) -> DecisionAnswer:
        """As :meth:`tell_throughput`, and decide again; the answer is as for :meth:`profiled`."""
        return await self._ask(DecisionAnswer, "POST", "/throughput", ThroughputRequest(shares, "prepare"))

    async def commit(self, flows: Sequence[str]) -> CommitAnswer:
        """Flip the first switch of ``flows``, whose senders hold still."""
        return await self._ask(CommitAnswer, "POST", "/commit", CommitRequest(tuple(flows)))

    async def verification(self, counters: Mapping[str, Mapping[str, int]] | None = None) -> VerificationAnswer:
        """What on the switches is not as decided, and the packets counted along each flow's path.

        ``counters`` (switch -> five-tuple -> packets) are used in place of the switches' own.
        """
        if counters is None:
            return await self._ask(VerificationAnswer, "GET", "/verification")
        return await self._ask(VerificationAnswer, "POST", "/verification", VerificationRequest(counters))

    async def observed_paths(self) -> ObservedPathsAnswer:
        """Paths read back from switches that chose for themselves (``ecmp-switch``)."""
        return await self._ask(ObservedPathsAnswer, "GET", "/observed-paths")

    async def _ask(self, kind: type[T], method: str, path: str, body: object = None) -> T:
        """Ask the controller; ``RunFailedError`` with its own message if it refuses."""
        patience_s = _ANSWER_S + _PER_CONNECTION_S * self._connections
        return await asyncio.to_thread(_request, _Connection(self._rest, patience_s), kind, method, path, body)

    def ended(self) -> str | None:
        """How the process ended, in words; None as long as it has not."""
        if self._process is None or self._process.returncode is None:
            return None
        said = f": {_last_words()}" if self._process.returncode >= 0 else ""
        return f"the controller {ended_how(self._process.returncode)}{said}"

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


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over the Unix socket ``path``."""

    def __init__(self, path: Path, patience_s: float) -> None:
        super().__init__("localhost", timeout=patience_s)
        self._path = path

    def connect(self) -> None:
        """Connect, as the base class does over TCP."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _request(connection: _Connection, kind: type[T], method: str, path: str, body: object) -> T:
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
