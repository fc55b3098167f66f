"""Attacks on what users write: scenarios, overrides, sweeps, traces and checks."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from benchmarks.attack import samples
from benchmarks.attack.arena import Ending
from benchmarks.attack.bombs import BOMBS, place
from benchmarks.attack.mutation import ODD_TEXTS, structural, textual
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.metrics.checks import CheckError, parse_check, unknown_names
from testbed.sweep.checking import points_of
from testbed.sweep.loading import load as load_sweep
from topologies.table import TraceError
from workloads.traces.measures import concurrency_of, size_steps
from workloads.traces.models import assign_models
from workloads.traces.registry import FORMATS, read_trace

Verdict = tuple[Ending, str]
LONGEST: Final = 2500
"""Characters of a line of a message."""
_MOST_POINTS: Final = 64
"""A sweep of more is only loaded: each takes as long as a scenario."""


def judged(message: str, *names: str) -> Verdict:
    """``refused`` if each line of ``message`` is one clear line that contains one of ``names``, else ``unclean``."""
    lines = message.split("\n")
    if not message or not all(line.strip() for line in lines):
        return "unclean", f"an empty line: {message[:200]!r}"
    for line in lines:
        if not line.isprintable() or len(line) > LONGEST:
            return "unclean", f"no clear line: {line[:300]!r}"
        if names and not any(name in line for name in names):
            return "unclean", f"names no file: {line[:300]!r}"
    return "refused", ""


def command(arguments: Sequence[str], *names: str) -> Verdict:
    """Run the command line in this process, and judge its status and what it says on standard error."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        status = main(list(arguments))
    return of_command(status, said.getvalue(), *names)


def of_command(status: int, said: str, *names: str) -> Verdict:
    """Judge a command that ended with ``status`` and said so much on standard error."""
    if "testbed: out of memory" in said:
        return "memory", ""
    if "Traceback" in said or "please report" in said:
        return "unclean", said[-500:].replace("\n", " | ")
    if status == 0 or status > 3:
        return "accepted", ""
    return judged("\n".join(line for line in said.splitlines() if "will stop working" not in line), *names)


def document(texts: Sequence[str], random: Random) -> bytes:
    """One of ``texts``, mutated as text or as data."""
    text, times = random.choice(texts), random.choice((1, 1, 1, 2, 4))
    if random.random() < 0.5:
        return textual(text, random, times)
    return dumped(structural(yaml.safe_load(text), random, times))


def dumped(data: Any) -> bytes:
    """``data`` as YAML; where YAML cannot say it, what it would be called."""
    try:
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, ValueError, RecursionError):
        return repr(data)[:100_000].encode("utf-8", "surrogatepass")


def scenario(number: int, random: Random, folder: Path) -> Verdict:
    """``validate`` a mutated scenario, or a right one with a mutated ``--set``."""
    path = folder / "s.yaml"
    if number < len(BOMBS):
        place(BOMBS[number], path)
        return command(["validate", str(path)], str(path))
    if random.random() < 0.2:
        path.write_text(samples.SMALL)
        key, _, value = random.choice(samples.OVERRIDES).partition("=")
        text = random.choice((f"{key}={random.choice(ODD_TEXTS)}", _decoded(textual(f"{key}={value}", random))))
        return command(["validate", str(path), f"--set={text}"], str(path), "--set")
    path.write_bytes(document(samples.SCENARIOS, random))
    return command(["validate", str(path)], str(path))


def plan(number: int, random: Random, folder: Path) -> Verdict:
    """``plan`` a mutated small scenario."""
    path = folder / "s.yaml"
    path.write_bytes(document((samples.SMALL, samples.FULL, samples.MANAGED), random))
    return command(["plan", *random.choice(((), ("--json",))), str(path)], str(path))


def flow(number: int, random: Random, folder: Path) -> Verdict:
    """Run a mutated small scenario in the flow engine for two iterations."""
    path = folder / "s.yaml"
    path.write_bytes(document((samples.SMALL, samples.MANAGED), random))
    bounds = ["--set=measure={iterations: 2, warmup: 0, time_limit: 2s}", "--scheduler=crux"]
    return command(["run", str(path), "--engine=flow", f"--out={folder}/runs", *bounds], str(path), "--set")


def sweep(number: int, random: Random, folder: Path) -> Verdict:
    """Load a mutated sweep and check its combinations."""
    path, own = folder / "w.yaml", folder / "s.yaml"
    own.write_text(samples.SMALL)
    text = samples.SWEEP.replace("SCENARIO", "s.yaml")
    if number < len(BOMBS):
        place(BOMBS[number], path)
    else:
        path.write_bytes(document((text,), random))
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = load_sweep(str(path))
            if len(found.combinations()) <= _MOST_POINTS:
                points_of(found)
    except TestbedError as error:
        return judged(str(error), str(path), str(own))
    return "accepted", ""


def trace(number: int, random: Random, folder: Path) -> Verdict:
    """Read a mutated trace, by its own format or another, and take its measures."""
    path = folder / "trace"
    _clear(path)
    kind = random.choice(list(samples.TRACES))
    files = samples.TRACES[kind]
    target = path if len(files) > 1 else folder / f"trace-{next(iter(files))}"
    if target is path:
        path.mkdir()
    chosen = random.choice(list(files))
    for name, text in files.items():
        file = path / name if target is path else target
        _clear(file)
        if name != chosen:
            file.write_text(text)
        elif number < len(BOMBS):
            place(BOMBS[number], file)
        else:
            file.write_bytes(textual(text, random, random.choice((1, 1, 2, 5))))
    wanted = random.choice((None, None, None, random.choice(list(FORMATS))))
    try:
        found = read_trace(target, wanted)
        concurrency_of(found)
        size_steps(found)
        assign_models(found, 1)
    except (TraceError, OSError) as error:
        return judged(str(error), str(target))
    return "accepted", ""


def check(number: int, random: Random, folder: Path) -> Verdict:
    """Parse a mutated check, look its names up and evaluate it on a summary, a mutated one at times."""
    text = random.choice(samples.CHECKS)
    text = _decoded(textual(text, random, random.choice((1, 1, 2, 4))))
    summary: Any = SUMMARY if random.random() < 0.7 else structural(SUMMARY, random)
    try:
        parsed = parse_check(text)
        unknown = unknown_names(parsed, ("ecmp", "crux"), ("one", "two"))
        result = parsed.evaluate(summary if isinstance(summary, dict) else {})
    except CheckError as error:
        return ("refused", "") if "\n" not in str(error) else ("unclean", repr(str(error)))
    for line in (*unknown, result.detail):
        if "\n" in line:
            return "unclean", repr(line)
    return ("refused" if unknown else "accepted"), ""


def command_line(number: int, random: Random, folder: Path) -> Verdict:
    """A command of its own process, as a user starts it."""
    path = folder / "s.yaml"
    path.write_bytes(document(samples.SCENARIOS, random))
    verb = random.choice((("validate",), ("plan",), ("sweep", f"--out={folder}/sweep")))
    full = random.random() < 0.2
    with open("/dev/full" if full else os.devnull, "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", *verb, str(path)],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    names = (str(path), "output cannot be written") if full else (str(path),)
    return of_command(done.returncode, done.stderr.decode("utf-8", "replace"), *names)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\x00", "")


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            _clear(inner)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


_JOB: Final = {
    "gpu_utilization": 0.5,
    "jct_s": 10.0,
    "jct_source": "projected",
    "iteration_s": {"mean": 0.5, "p50": 0.5, "p99": 0.6},
    "level": 1,
}
SUMMARY: Final[dict[str, Any]] = {
    "runs": [
        {
            "scheduler": scheduler,
            "gpu_utilization": 0.5,
            "duration_s": 3.0,
            "fidelity": {"verdict": "ok", "reasons": []},
            "jobs": [{"name": "one", **_JOB}, {"name": "two", **_JOB}],
        }
        for scheduler in ("ecmp", "crux")
    ],
    "comparison": {"baseline": "ecmp", "crux": {"gpu_utilization_points": 1.0, "jct_change": {"one": -0.1}}},
}

Attack = Callable[[int, Random, Path], Verdict]
