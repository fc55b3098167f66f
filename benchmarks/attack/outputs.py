"""Attacks on what the testbed reads back or is asked: run directories, and requests to the controller."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.attack import samples
from benchmarks.attack.bombs import BOMBS, place
from benchmarks.attack.inputs import Verdict, command, judged
from benchmarks.attack.mutation import ODD_TEXTS, odd_value, structural, textual
from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.ryu_compat import hub
from controller.schedulers.registry import create
from controller.service.json_codec import encode
from controller.service.rest import RestServer
from controller.service.service import Service
from testbed.api import load as load_run
from testbed.api import run_scenario
from testbed.cli.main import explain
from testbed.errors import TestbedError
from testbed.scenario import build_fabric, build_jobs, load

FILES: Final = (
    "summary.json",
    "summary.json",
    "experiment.json",
    "manifest.json",
    "crux/run.json",
    "crux/decisions.json",
    "crux/iterations.csv",
    "crux/links.csv",
)
"""What is damaged, the summary more often: all verbs read it."""
_REPORTS: Final = 0.25
"""Share of the cases that draw a whole report, which takes seconds."""
_SOURCE: Final = "source"
_KEPT: Final = (".json", ".csv", ".yaml", ".log")


def prepare_run(folder: Path) -> None:
    """Make the run that :func:`run_directory` damages; two schedulers, so that there is a comparison."""
    path = folder / "small.yaml"
    path.write_text(samples.SMALL)
    result = run_scenario(path, engine="flow", out=folder / "runs")
    shutil.copytree(result.directory, folder / _SOURCE, ignore=_left_out)


def _left_out(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(name).suffix and Path(name).suffix not in _KEPT]


def run_directory(number: int, random: Random, folder: Path) -> Verdict:
    """``compare`` and ``report`` a run of which one file is damaged; nothing may appear outside of it."""
    good, arena = folder.parent / _SOURCE, folder / "arena"
    shutil.rmtree(arena, ignore_errors=True)
    arena.mkdir()
    damaged, out = arena / "damaged", arena / "out"
    shutil.copytree(good, damaged)
    target = damaged / random.choice(FILES)
    _damage(target, number, random)
    if random.random() < _REPORTS:
        verdict = command(["report", str(damaged)], str(damaged))
    elif target.name != "summary.json":
        verdict = _loaded(damaged)
    else:
        others = random.choice(((), (str(good),)))
        shown = random.choice((("--json",), (f"--out={out}",)))
        verdict = command(["compare", str(damaged), *others, *shown], str(damaged))
    left = {path.name for path in arena.iterdir()} - {"damaged", "out"}
    return ("unclean", f"written outside: {', '.join(sorted(left))}") if left else verdict


def _loaded(directory: Path) -> Verdict:
    """Read all of the run, as ``testbed.load`` does."""
    said = io.StringIO()
    try:
        load_run(directory)
    except TestbedError as error:
        with contextlib.redirect_stderr(said):
            explain(error)
        return judged(said.getvalue().rstrip("\n"), str(directory))
    return "accepted", ""


def _damage(target: Path, number: int, random: Random) -> None:
    if number < len(BOMBS):
        place(BOMBS[number], target)
        return
    text = target.read_text("utf-8")
    kind = random.random()
    if kind < 0.05:
        target.unlink()
    elif target.suffix == ".json" and kind < 0.65:
        mutant = structural(json.loads(text), random, random.choice((1, 1, 2, 4)))
        target.write_bytes(_json(mutant).encode("utf-8", "surrogatepass"))
    else:
        target.write_bytes(textual(text, random, random.choice((1, 1, 2, 4))))


def _json(data: Any) -> str:
    try:
        return json.dumps(data, default=str)
    except (ValueError, TypeError, RecursionError):
        return repr(data)[:100_000]


@cache
def _parts() -> tuple[Any, list[Any]]:
    """The JSON of a small fabric and of its jobs."""
    path = Path("hello.yaml")
    scenario = load(path)
    fabric = build_fabric(scenario)
    return encode(fabric), [encode(job) for job in build_jobs(scenario, fabric)]


def prepare_requests(folder: Path) -> None:
    """Build what requests are made of."""
    _parts()


def _put_fabric() -> Any:
    return _parts()[0]


def _post_job() -> Any:
    return {"job": _parts()[1][0], "apply": "now"}


def _post_profile() -> Any:
    profile = {"iteration_s": 1.0, "communication_s": 0.5, "flops": 1e12}
    return {"job": _parts()[1][1]["name"], "profile": profile, "apply": "prepare"}


REQUESTS: Final[tuple[tuple[str, str, Callable[[], Any]], ...]] = (
    ("PUT", "/fabric", _put_fabric),
    ("PUT", "/switches", lambda: ["tor0"]),
    ("POST", "/jobs", _post_job),
    ("POST", "/profiles", _post_profile),
    ("PUT", "/throughput", lambda: {"small": 0.5}),
    ("POST", "/commit", lambda: {"flows": [_parts()[1][1]["flows"][0]["id"]]}),
    ("POST", "/verification", lambda: {"counters": {"tor0": {"10.0.0.1:61000 > 10.0.2.1:5000": 3}}}),
    ("DELETE", "/jobs/small?apply=now", lambda: None),
    ("GET", "/state", lambda: None),
    ("GET", "/rules", lambda: None),
    ("GET", "/verification", lambda: None),
    ("GET", "/observed-paths", lambda: None),
)


def _server() -> RestServer:
    service = Service(MemoryNetwork(), create("crux"))
    rest = RestServer(service, hub.Semaphore(1))
    fabric, jobs = _parts()
    rest.answer("PUT", "/fabric", lambda: fabric)
    rest.answer("POST", "/jobs", lambda: {"job": jobs[1], "apply": "now"})
    return rest


def request(number: int, random: Random, folder: Path) -> Verdict:
    """A mutated request to a controller that has a job: through its function, or as bytes on a socket."""
    logging.disable(logging.CRITICAL)  # in a process of its own: the log of refused requests is not shown
    rest = _server()
    method, target, body = random.choice(REQUESTS)
    if random.random() < 0.15:
        target = random.choice((f"/{random.choice(ODD_TEXTS)}", target + random.choice(ODD_TEXTS), "//", "/%00"))
    data = body()
    if random.random() < 0.6 and data is not None:
        mutant = structural(data, random, random.choice((1, 1, 3))) if random.random() < 0.9 else odd_value(random)
        return _answered(rest.answer(method, target, lambda: mutant))
    raw = textual(_json(data), random) if data is not None else b""
    if random.random() < 0.05:
        raw = b"[" * random.choice((100, 50_000))
    return _on_socket(rest, _http(method, target, raw, random))


def _answered(response: Any) -> Verdict:
    if response.status == 200:
        return "accepted", ""
    said = str(response.body.get("error", "")) if isinstance(response.body, dict) else ""
    if response.status >= 500:
        return "unclean", f"{response.status}: {said[:300]}"
    # On the wire it is JSON in ASCII: what is not printable is escaped there.
    return judged(said if "\n" in said else said.encode("unicode_escape").decode("ascii"))


def _http(method: str, target: str, body: bytes, random: Random) -> bytes:
    length = random.choice((len(body), len(body), len(body), -1, 10**30, "x", "", "1e3", 0))
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {length}\r\n\r\n"
    if random.random() < 0.3:
        return textual(head, random) + body
    return head.encode("utf-8", "surrogatepass") + body


def _on_socket(rest: RestServer, raw: bytes) -> Verdict:
    here, there = socket.socketpair()
    with here:
        here.settimeout(15)
        here.sendall(raw[: 2**16])
        here.shutdown(socket.SHUT_WR)
        rest._handle(there)
        answer = here.makefile("rb").read()
    if not answer:
        asks = len(raw.split(b"\n", 1)[0].split()) == 3
        return ("unclean" if asks else "refused"), f"no answer to {raw[:200]!r}"
    words = answer.split(b"\r\n", 1)[0].split()
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    _, _, body = answer.partition(b"\r\n\r\n")
    if status >= 500 and status not in (501, 505):
        return "unclean", f"{status}: {body[:300]!r} to {raw[:200]!r}"
    return ("accepted" if status == 200 else "refused"), ""
