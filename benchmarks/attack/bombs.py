"""Small things that would take all memory or all time, and files that are no files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.attack import samples

Bomb = Callable[[Path], None]


def _text(text: str) -> Bomb:
    def write(path: Path) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))

    return write


def _changed(old: str, new: str, text: str = samples.FULL) -> Bomb:
    assert old in text, old
    return _text(text.replace(old, new))


def _aliases(merged: bool) -> str:
    """Ten levels, each of which names the one below ten times."""
    lines = ["a0: &a0 {x0: 1, y0: 2}" if merged else "a0: &a0 [x, x]"]
    for level in range(1, 11):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{inner}], k{level}: 1}}" if merged else f"[{inner}]"))
    return "\n".join(lines) + "\n"


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 2**30)


def _wide(path: Path) -> None:
    path.write_text("job_id," + ",".join(f"c{number}" for number in range(100_000)) + "\n")


BOMBS: Final[tuple[Bomb, ...]] = (
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("/dev/urandom"),
    lambda path: path.symlink_to("/dev/null"),
    lambda path: path.symlink_to(path),
    os.mkfifo,
    os.mkdir,
    _sparse,
    _wide,
    _text(""),
    _text("\0" * 1000),
    _text("[" * 100_000),
    _text("{a: " * 100_000),
    _text("- " * 100_000),
    _text("a: &a [*a, *a]\n"),
    _text("a: &a {<<: *a}\n"),
    _text(_aliases(merged=False)),
    _text(_aliases(merged=True)),
    _text(samples.FULL + _aliases(merged=False)),
    _text(samples.FULL + _aliases(merged=True)),
    _text("x" * 1_000_000),
    _text("x: " + "1:" * 400_000 + "1\n"),
    _text("x: 0x" + "f" * 900_000 + "\n"),
    _text("x: " + "9" * 900_000 + "\n"),
    _text("".join(f"k{number}: {number}\n" for number in range(60_000))),
    _text("jobs: [" + "{least_gpus: 1, most_gpus: 2}," * 30_000 + "]\n"),
    _text("a,b\n" + "x," * 500_000),
    _text('"' + "x" * 900_000),
    _text("job_id," + "x" * 200_000 + "\n1,2\n"),
    _text("# " + "x" * 100 + "\n" * 1 + "# c\n" * 200_000),
    _text("# skipped " + "9" * 5000 + ": no GPUs\n" + "name,submit_s,duration_s,gpus\na,0,1,1\n"),
    _text("name,submit_s,duration_s,gpus\n" + "a,0,1,1\n" * 60_000),
    _text('[{"status": [], "jobid": 1, "attempts": [], "submitted_time": []}]'),
    _text("[" * 50_000 + "]" * 50_000),
    _text("[" + "9" * 5000 + "]"),
    _changed("parallel_links: 2", "parallel_links: 1000000000"),
    _changed("parallel_links: 2, bonded: false", "parallel_links: 1000000, bonded: true"),
    _changed("parallel_links: 2", "parallel_links: 100000"),
    _changed("every: 2", "every: 1000000000"),
    _changed("every: 2", "every: 1000"),
    _changed("hosts: 4", "hosts: 1000000000"),
    _changed("hosts: 4", "hosts: 65536"),
    _changed("gpus_per_host: 4", "gpus_per_host: 1000000000"),
    _changed("gpus_per_host: 4", "gpus_per_host: 100000"),
    _changed("nics_per_host: 2", "nics_per_host: 1000000000"),
    _changed("tors: 2", "tors: 1000000000"),
    _changed("tors: 2", "tors: 1000000"),
    _changed("aggregations: 2", "aggregations: 1000000000"),
    _changed("aggregations: 2", "aggregations: 60000"),
    _changed("count: 2", "count: 1000000000"),
    _changed("count: 2", "count: 2000"),
    _changed("gpus: 4, start", "gpus: 1000000000, start"),
    _changed("iterations: 100", "iterations: 1000000000000"),
    _changed("iterations: 2", "iterations: 1000000000"),
    _changed("popularity: [5, 3, 2, 1], routed: [4, 4, 2, 1]", "popularity: [" + "1," * 20_000 + "]"),
    _changed("popularity: [5, 3, 2, 1]", "popularity: [1000000000000000, 1, 1, 1]"),
    _changed("seed: 3", "seed: " + "9" * 5000),
    _changed("seed: 3", "seed: !!timestamp 1000"),
    _changed("seed: 3", "seed: !!bool x"),
    _changed("seed: 3", "seed: !!int ''"),
    _changed("seed: 3", "seed: !!float ''"),
    _changed("seed: 3", "seed: !!binary aGVsbG8="),
    _changed("start: 1s", "start: 1e29 s"),
    _changed("compute: 100ms", "compute: 1e300s"),
    _changed("compute: 100ms", "compute: 1e-300s"),
    _changed("communication: 350MB", "communication: 1e300B"),
    _changed("time_limit: 5s", "time_limit: 1e300h"),
    _changed("port_rate: 100Gbps", "port_rate: 1e300bps"),
    _changed("bandwidth: 32000", "bandwidth: 1.0e+300"),
    _changed("factor: 1.3", "factor: 1.0e+300"),
    _changed("factor: 1.3", "factor: 5.0e-324"),
    _changed("name: big", "name: b\u00e9"),
    _changed("name: big", "name: " + "b" * 1100),
    _changed("name: full", "name: " + "f" * 1100),
    _changed("description: &text every", "description: &text " + "d" * 500_000),
    _changed("retries: 2", "retries: 1000000000", samples.MANAGED),
    _changed("swing: 0.3", "swing: 0.0", samples.MANAGED),
    _changed("every_s: 60", "every_s: 1.0e-9", samples.MANAGED),
    _changed("slice_s: 1.0", "slice_s: 1.0e-300", samples.MANAGED),
    _changed("limits: [10.0, 20.0]", "limits: [.nan, .inf]", samples.MANAGED),
    _changed("a: {weight: 2.0, least: 1}", "a: 3", samples.MANAGED),
    _changed(
        "hosts: 4, gpus_per_host: 2",
        "hosts: 8000, gpus_per_host: 16",
        samples.SMALL.replace("gpus: 4,", "gpus: 65536, collective: alltoall,"),
    ),
    _changed(
        "hosts: 4, gpus_per_host: 2",
        "hosts: 8000, gpus_per_host: 16",
        samples.SMALL.replace("name: one, model: bert, gpus: 4", "name: one, model: bert, gpus: 16, count: 1999"),
    ),
    _changed(
        "hosts: 4, gpus_per_host: 2",
        "hosts: 8000, gpus_per_host: 16",
        "placement_policy: spread\n"
        + samples.SMALL.replace("name: one, model: bert, gpus: 4", "name: one, model: bert, gpus: 7, count: 38"),
    ),
)
"""Each puts itself at a path that does not exist yet."""


def place(bomb: Bomb, path: Path) -> None:
    """Put ``bomb`` at ``path``, instead of what is there."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    bomb(path)
