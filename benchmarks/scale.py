"""What a run takes on fabrics of 96 to 1,024 GPUs: time to come up, CPU by process, memory, packets, wall time.

All fabrics run at one scale, that of ``clos1024``: a NIC sends equally much in each, so CPU and time per NIC can be
compared. Jobs are those of ``clos1024`` and, made by the same recipe, of smaller ones; ``clos96`` is its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.common import ATTEMPTS, Line, Outcome, Scenario, bundled, main, patiently, say
from benchmarks.leftovers import named_processes
from testbed.api import prepare
from testbed.errors import EXIT_CANNOT, EXIT_NOT_BELIEVABLE, EXIT_OK, CannotRunError, RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.machine.capabilities import available_memory
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from topologies.shaping import TCP_IP_HEADER

TITLE: Final = "Fabrics of 96 to 1,024 GPUs at one scale: a NIC sends equally much in each"
UP_S: Final = 15.0
MEMORY_GIB: Final = 4.0
GROWTH: Final = 1.0
"""Cost of a NIC at 1,024 GPUs / at 256: 1 is linear in NICs."""
SETTLE_S: Final = 20.0
"""From coming up until processes are looked at: at this scale the longest warm-up iteration takes 18 s."""
LOOK_S: Final = 20.0
RUN_LIMIT_S: Final = 900.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_GROUPS: Final[Mapping[str, str]] = {  # name of a process -> the column that its CPU time is part of
    "a worker": "workers",
    "the opener": "workers",
    "the first process": "watching",
    "the controller": "controller",
    "ovs-vswitchd": "open vswitch",
}


def scenario(tors: int, hosts_per_tor: int) -> Scenario:
    """A fabric like that of ``clos1024`` with jobs like its own: GPT on a host under each ToR, others on two hosts."""
    made = bundled("clos1024")
    hosts = tors * hosts_per_tor
    cables = max(1, 8 * hosts_per_tor // tors)
    fabric = {**made["fabric"], "hosts": hosts, "tors": tors, "aggregations": tors, "parallel_links": cables}
    jobs = [_job("gpt-0", "crux-gpt", [hosts_per_tor * tor for tor in range(tors)])]
    for row in range(1, hosts_per_tor):
        model = "resnet" if row == hosts_per_tor - 1 else "bert"
        for first in range(tors // 2):
            places = [hosts_per_tor * tor + row for tor in range(first, tors, tors // 2)]
            jobs.append(_job(f"{model}-{row}-{first}", f"crux-{model}", places))
    return {**made, "name": f"scale-{8 * hosts}", "fabric": fabric, "jobs": jobs}


def _job(name: str, model: str, hosts: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "model": model,
        "placement": [f"h{host}" for host in hosts],
        "iterations": 1000,
        "jitter": 0.02,
    }


@dataclass(frozen=True)
class Usage:
    """CPU in per cent of one core by group, and memory in bytes."""

    cpu: Mapping[str, float]
    memory: int


def measure(quick: bool) -> list[Line]:
    """A row for each fabric, and whether its cost grows no faster than its NICs."""
    large = prepare("clos1024").experiments[0].scale
    scale = {"bandwidth": large.bandwidth, "time": large.time, "mtu": large.mtu}
    made = [{**bundled("clos96"), "channels": 1}, scenario(8, 4), scenario(16, 4), bundled("clos1024")]
    lines = [_row({**one, "scale": scale}) for one in (made[:2] if quick else made)]
    return lines if quick else [*lines, *_growth(lines[1], lines[-1])]


def _row(document: Scenario) -> Line:
    """The row of a run that is ok, or of the last one tried."""
    for left in reversed(range(ATTEMPTS)):
        made = patiently(lambda: _row_once(document))
        if made.columns["verdict"] == "ok" or not left:
            return made
        say(f"{document['name']}: {made.columns['verdict']}; trying again")
    raise AssertionError("unreachable")


def _row_once(document: Scenario) -> Line:
    measure_ = {"iterations": 4, "warmup": 1, "time_limit": "30s"}
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        path = folder / "scenario.yaml"
        path.write_text(yaml.safe_dump({**document, "measure": measure_, "schedulers": ["crux"]}), "utf-8")
        experiment = prepare(str(path)).experiments[0]
        usage, wall_s = _watched_run(path, folder)
        directory = RunDirectory.open(next(path for path in (folder / "runs").iterdir() if path.is_dir()))
        record = directory.read_record("crux")
    environment: Any = record.environment
    up_s = float(environment["timings_s"]["set up"])
    columns: dict[str, object] = {
        "GPUs": len(experiment.fabric.gpus),
        "NICs": len(experiment.fabric.nics),
        "up s": round(up_s, 1),
        **{f"{group} %": round(value) for group, value in usage.cpu.items()},
        "memory GiB": round(usage.memory / 2**30, 2),
        "packets x switches / s": f"{_packet_hops(record, experiment) / (wall_s - up_s):,.0f}",
        "wall s / simulated s": round((wall_s - up_s) / record.duration_s, 1),
        "verdict": record.fidelity.verdict,
    }
    if columns["GPUs"] != 1024:
        return Line(columns)
    met = up_s <= UP_S and usage.memory <= MEMORY_GIB * 2**30
    line = Line(columns, f"up in {UP_S:.0f} s, {MEMORY_GIB:.0f} GiB")
    return replace(line, outcome=_judged(met, line))


def _packet_hops(record: RunRecord, experiment: Experiment) -> float:
    """Full packets that switches sent in the whole run, as many as their links carried bytes for."""
    scale, links = experiment.scale, experiment.fabric.links
    sent = sum(row.bytes for row in record.links if links[row.link].source in experiment.fabric.switches)
    return scale.size(sent) / (scale.mtu - TCP_IP_HEADER)


def _judged(holds: bool, *rows: Line) -> Outcome:
    """``pass`` or ``missed``, but ``inconclusive`` unless the runs of all ``rows`` are ok."""
    if any(row.columns["verdict"] != "ok" for row in rows):
        return "inconclusive"
    return "pass" if holds else "missed"


def _growth(small: Line, large: Line) -> Iterator[Line]:
    """Whether time to come up and CPU of the large fabric are no more than the small one's times the ratio of NICs."""
    for column in ("up s", "not idle %"):
        per_nic = [float(str(line.columns[column])) / int(str(line.columns["NICs"])) for line in (small, large)]
        ratio = per_nic[1] / per_nic[0]
        columns = {"GPUs": f"{column} per NIC, 1,024 / {small.columns['GPUs']} GPUs", "NICs": f"{ratio:.2f}"}
        yield Line(columns, f"<= {GROWTH:g}", _judged(ratio <= GROWTH, small, large))


def _watched_run(path: Path, folder: Path) -> tuple[Usage, float]:
    """Run the scenario at ``path``, look at its processes while it measures; its wall time in seconds.

    Raises ``CannotRunError`` where the run could not begin, ``RunFailedError`` where it failed or ended too early.
    """
    before, began = available_memory(), time.monotonic()
    command = [sys.executable, "-m", "testbed", "run", str(path), "--out", str(folder / "runs")]
    with (folder / "errors").open("w+", encoding="utf-8") as errors:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            while run.poll() is None and not _is_up(folder):
                time.sleep(0.1)
            first, memory = _look(run, SETTLE_S), before - available_memory()
            last = _look(run, LOOK_S)
            status = run.wait(timeout=RUN_LIMIT_S)
        finally:
            run.kill()
            run.wait()
        errors.seek(0)
        said = errors.read().strip()
    say(f"{path}: status {status} {said}")
    if first is None or last is None or status not in (EXIT_OK, EXIT_NOT_BELIEVABLE):
        raise _failure(status, said)
    cpu = {group: 100 * (last[group] - first[group]) / _TICKS / LOOK_S for group in last}
    return Usage(cpu, memory), time.monotonic() - began


def _look(run: subprocess.Popen[bytes], wait_s: float) -> dict[str, int] | None:
    """Wait, and return the ticks of ``run``; None once it has ended: what is left of it would be too little."""
    try:
        run.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        return _ticks(run.pid)
    return None


def _failure(status: int, said: str) -> CannotRunError | RunFailedError:
    last = said.splitlines()[-1] if said else "it said nothing"
    if status == EXIT_CANNOT:
        return CannotRunError(last)
    ended = "ended before it was looked at" if status in (EXIT_OK, EXIT_NOT_BELIEVABLE) else f"failed: {last}"
    return RunFailedError(f"the run {ended}")


def _is_up(folder: Path) -> bool:
    return any("timings:" in log.read_text(errors="replace") for log in folder.glob("runs/*/*/testbed.log"))


def _ticks(run: int) -> dict[str, int]:
    """CPU ticks so far: of the groups of processes of the run with process id ``run``, and of the machine."""
    found = dict.fromkeys(_GROUPS.values(), 0)
    for name, pids in named_processes(run).items():
        if name in _GROUPS:
            found[_GROUPS[name]] += sum(map(_ticks_of, pids))
    total = [int(value) for value in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return {**found, "softirq": total[6], "not idle": sum(total) - total[3] - total[4] - total[7]}


def _ticks_of(pid: int) -> int:
    """CPU ticks of a process; none once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
