"""Sabotage: somebody disturbs a run from outside, and its verdict has to name what was done.

Each trial starts a run of two small jobs, waits until it measures, does one thing to it for a limited
time, and looks for a finding of the right kind in the summary. Needs root, as a run does. A trial takes about
20 s; ``--trials 20`` of all kinds most of an hour. Trials are kept as lines of JSON as they come, and a second call
makes those that are missing. ``undisturbed`` leaves such a run alone, ``undisturbed-NAME`` a bundled scenario as it is:
what their verdicts name are false alarms, or what the machine did by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.common import Line, append_row, bundled, rows_of, say, show, status_of
from testbed.api import prepare
from testbed.experiment.experiment import Experiment, Scale
from testbed.machine.manifest import git_commit
from testbed.machine.ownership import mark_of
from topologies.addressing import interface_name, port_number
from topologies.fabric import Fabric
from topologies.shaping import LEAF_HANDLE, Shaping

TITLE: Final = "sabotage: is what was done to a run named in its verdict?"
LINK: Final = "tor1->h1n0p0"
"""Carries the ring of job ``big`` whatever path its flows take."""
SETTLE_S: Final = 3.0
"""From the end of the set-up to the sabotage: warm-up is over, some iterations are measured."""
LASTS_S: Final = 4.0
STOP_S: Final = 0.3
START_LIMIT_S: Final = 60.0
RUN_LIMIT_S: Final = 600.0
QUOTA: Final = (3_000, 100_000)
"""Microseconds of CPU time in each period: what forwarding this little traffic takes is more."""
LOCK_POLL_S: Final = 2.0
ROWS: Final = Path("runs/sabotage.jsonl")
_GROUPS: Final = Path("/sys/fs/cgroup")
_SWITCHES: Final = "/run/testbed/openvswitch"


class NotPossibleError(Exception):
    """This machine does not let that be done; the text says why."""


@dataclass(frozen=True)
class Target:
    """A run under way: its processes as seen from outside, and its fabric."""

    inside: int
    openvswitch: int
    workers: tuple[int, ...]
    fabric: Fabric
    scale: Scale

    def enter(self, *command: str) -> str:
        """Run ``command`` in the network and mount namespaces of the run's switches; return what it says."""
        # With the run's processes in view too: tc takes the length of the kernel's tick from /proc/self/net.
        arguments = ["nsenter", f"--target={self.inside}", "--net", "--mount", "--pid", "--", *command]
        environment = dict(os.environ, OVS_RUNDIR=_SWITCHES)
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()}")
        return done.stdout

    @property
    def shaping(self) -> Shaping:
        """How the interface that sends on :data:`LINK` is shaped."""
        rate = self.scale.rate(self.fabric.links[LINK].capacity)
        return Shaping(interface_name(self.fabric, LINK), rate, self.scale.mtu, 0)

    def openflow(self, verb: str, switch: str, *rest: str) -> str:
        """Talk to a switch as anybody on the machine could, past the controller."""
        command = ["ovs-ofctl", "--strict", "-O", "OpenFlow13", verb, f"unix:{_SWITCHES}/{switch}.mgmt", *rest]
        return self.enter(*command)


@dataclass(frozen=True)
class Kind:
    """A way to disturb a run, and how its verdict names it: the kind of a finding and words in it."""

    act: Callable[[Target], None]
    finding: str
    words: str
    summary: str


@dataclass(frozen=True)
class Trial:
    """What came of one: whether it was named, the verdict, and all findings in words."""

    named: bool
    verdict: str
    findings: tuple[str, ...]


def hog(_target: Target) -> None:
    """Two busy loops per core."""
    code = f"import time\nend = time.monotonic() + {LASTS_S}\nwhile time.monotonic() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    for loop in loops:
        loop.wait()


def quota(target: Target) -> None:
    """Open vSwitch may use hardly any CPU time."""
    with _control_group() as group:
        home = _group_of(target.openvswitch, group)
        try:
            (group / "cgroup.procs").write_text(str(target.openvswitch))
            time.sleep(LASTS_S)
        finally:
            with contextlib.suppress(OSError):  # the run, and with it the process, may be gone
                (home / "cgroup.procs").write_text(str(target.openvswitch))


@contextlib.contextmanager
def _control_group() -> Iterator[Path]:
    """A control group with :data:`QUOTA`, of whichever version of cgroups carries the CPU controller."""
    name = f"testbed-sabotage-{os.getpid()}"
    old, new = _GROUPS / "cpu", _GROUPS / "cgroup.controllers"
    if (old / "cpu.cfs_quota_us").exists() or (old / "cpu.cfs_period_us").exists():
        group, files = old / name, {"cpu.cfs_period_us": str(QUOTA[1]), "cpu.cfs_quota_us": str(QUOTA[0])}
    elif new.exists() and "cpu" in (_GROUPS / "cgroup.subtree_control").read_text().split():
        group, files = _GROUPS / name, {"cpu.max": f"{QUOTA[0]} {QUOTA[1]}"}
    else:
        raise NotPossibleError("no control group with a CPU quota can be made here")
    try:
        group.mkdir()
        for file, value in files.items():
            (group / file).write_text(value)
    except OSError as error:
        raise NotPossibleError(f"{group}: {error.strerror}") from error
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    for _ in range(50):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def _group_of(pid: int, beside: Path) -> Path:
    """The control group in which ``pid`` is, in the hierarchy of ``beside``."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if ("cpu" in controllers.split(",")) == (beside.parent != _GROUPS):
            return beside.parent / path.lstrip("/")
    return beside.parent


def slow_link(target: Target) -> None:
    """A link at 80 % of its rate."""
    shaping = target.shaping
    change = f"tc class change dev {shaping.interface} parent 1: classid 1:1 htb"
    for share, seconds in ((0.8, LASTS_S), (1.0, 0.0)):
        rate = f"{round(share * shaping.wire_rate)}bit"
        target.enter(*f"{change} rate {rate} ceil {rate} burst {shaping.burst} cburst {shaping.burst}".split())
        time.sleep(seconds)


def wiped_queue(target: Target) -> None:
    """All queues of a link taken away."""
    target.enter(*f"tc qdisc del dev {target.shaping.interface} root".split())


def missing_filter(target: Target) -> None:
    """The filter taken away that leads to the highest level of a link."""
    interface = target.shaping.interface
    shown = target.enter(*f"tc filter show dev {interface} parent 1:".split())
    found = re.search(rf"fh (\S+) order \d+ .*flowid 1:{LEAF_HANDLE:x}\b", shown)
    if found is None:
        raise NotPossibleError("the filters are of another kind here")
    target.enter(*f"tc filter del dev {interface} parent 1: protocol ip prio 1 handle {found[1]} u32".split())


def detour(target: Target) -> None:
    """A flow moved to the other aggregation switch, to stay there."""
    for switch, rule in _detour(target)[0]:
        target.openflow(rule[0], switch, *rule[1:])


def short_detour(target: Target) -> None:
    """A flow moved to the other aggregation switch and back again."""
    there, back = _detour(target)
    for rules, seconds in ((there, LASTS_S), (back, 0.0)):
        for switch, rule in rules:
            target.openflow(rule[0], switch, *rule[1:])
        time.sleep(seconds)


Rules = list[tuple[str, tuple[str, ...]]]


def _detour(target: Target) -> tuple[Rules, Rules]:
    """Commands that move the busiest flow from ``tor0`` to ``tor1`` to the other aggregation switch, and back."""
    fabric = target.fabric
    outputs = {port_number(fabric, f"tor0->agg{index}"): index for index in (0, 1)}
    best: tuple[int, str, int, str] | None = None
    for line in target.openflow("dump-flows", "tor0").splitlines():
        found = re.search(r"n_packets=(\d+).*?(priority=\S+) actions=(\S*output:(\S+))", line)
        if found is None or not found[4].isdigit() or int(found[4]) not in outputs:
            continue
        if best is None or int(found[1]) > best[0]:
            best = int(found[1]), found[2], outputs[int(found[4])], found[3]
    if best is None:
        raise RuntimeError("tor0 holds no rule towards an aggregation switch")
    _, match, now, actions = best
    other = 1 - now
    there = actions.replace(
        f"output:{port_number(fabric, f'tor0->agg{now}')}", f"output:{port_number(fabric, f'tor0->agg{other}')}"
    )
    beyond = f"{match},actions=output:{port_number(fabric, f'agg{other}->tor1')}"
    return (
        [(f"agg{other}", ("add-flow", beyond)), ("tor0", ("mod-flows", f"{match},actions={there}"))],
        [("tor0", ("mod-flows", f"{match},actions={actions}")), (f"agg{other}", ("del-flows", match))],
    )


def stopped_worker(target: Target) -> None:
    """A worker stopped for 300 ms."""
    process = os.pidfd_open(target.workers[0])
    try:
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        time.sleep(STOP_S)
    finally:
        signal.pidfd_send_signal(process, signal.SIGCONT)
        os.close(process)


UNDISTURBED: Final[Mapping[str, str | None]] = {
    "undisturbed": None,
    "undisturbed-hello": "hello",
    "undisturbed-clos96": "clos96",
}
"""What is left alone: a bundled scenario, or (None) the one that is disturbed otherwise."""
KINDS: Final[Mapping[str, Kind]] = {
    "hog": Kind(hog, "neighbours", "other processes took", "two busy loops per core for 4 s"),
    "quota": Kind(quota, "quota", "held ovs-vswitchd back", "CPU quota of 3 % on Open vSwitch for 4 s"),
    "slow-link": Kind(slow_link, "setting", f"link {LINK}: the shaper was set from", "a link at 80 % for 4 s"),
    "wiped-queue": Kind(wiped_queue, "setting", f"link {LINK}: the shaper is gone", "a link's queues deleted"),
    "missing-filter": Kind(missing_filter, "setting", f"link {LINK}: the filter of DSCP", "a DSCP filter deleted"),
    "detour": Kind(detour, "path", "", "a flow moved to another path behind the controller's back"),
    "short-detour": Kind(short_detour, "path", "", "a flow moved for 4 s, and back"),
    "stopped-worker": Kind(stopped_worker, "standstill", "the worker of host", "a worker stopped for 300 ms"),
}


def small(limit: str = "60s") -> Mapping[str, Any]:
    """The scenario that is disturbed: the two jobs of ``hello``, for longer; with what is lost until ``limit``."""
    measure = {"iterations": 22, "warmup": 1, "time_limit": limit}
    return {**bundled("hello"), "name": "sabotage", "measure": measure}


def trial(kind: Kind | None, *options: str, document: Mapping[str, Any]) -> Trial:
    """Run the scenario ``document`` once and disturb it by ``kind`` (None: leave it alone).

    Raises:
        NotPossibleError: That cannot be done to a run on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="sabotage-") as name:
        folder = Path(name)
        scenario = folder / "sabotage.yaml"
        scenario.write_text(yaml.safe_dump(dict(document)), "utf-8")
        experiment = prepare(str(scenario)).experiments[0]
        command = [sys.executable, "-m", "testbed", "run", str(scenario), "--scheduler", "crux", "--json", *options]
        run = _start([*command, "--out", str(folder / "runs")], folder)
        try:
            if kind is not None:
                time.sleep(SETTLE_S)
                kind.act(_target(run.pid, experiment))
            said, _ = run.communicate(timeout=RUN_LIMIT_S)
        finally:
            run.kill()
            run.wait()
        if run.returncode not in (0, 4):
            return Trial(False, f"failed with status {run.returncode}", ())
        return _trial(json.loads(said)["runs"][0]["fidelity"], kind)


def _trial(fidelity: Mapping[str, Any], kind: Kind | None) -> Trial:
    findings = fidelity["findings"]
    named = kind is not None and any(f["kind"] == kind.finding and kind.words in f["what"] for f in findings)
    told = tuple(f"{f['kind']} {f['from_s']:.1f}-{f['to_s']:.1f} s: {f['what']}" for f in findings)
    return Trial(named, str(fidelity["verdict"]), told)


def _start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a run, again and again while another one has the machine, and wait until its cluster is set up."""
    deadline = time.monotonic() + 10 * START_LIMIT_S
    while True:
        with (folder / "errors").open("w") as errors:
            run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        began = time.monotonic()
        while run.poll() is None and time.monotonic() - began < START_LIMIT_S:
            if any("timings:" in log.read_text(errors="replace") for log in folder.glob("runs/*/*/testbed.log")):
                return run
            time.sleep(0.05)
        run.kill()
        run.wait()
        said = (folder / "errors").read_text().strip()
        if "another emulation" not in said or time.monotonic() > deadline:
            raise RuntimeError(f"the run did not start: {said.splitlines()[-1] if said else 'it said nothing'}")
        time.sleep(LOCK_POLL_S)


def _target(run: int, experiment: Experiment) -> Target:
    """The processes of the run that is process ``run``; those of other runs carry another mark."""
    names: dict[str, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (mark_of(int(entry.name)) or "").startswith(f"{run}-"):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            for name in ("-m testbed.engines.emulation.sandbox_main", "ovs-vswitchd unix:", "-m workloads.worker"):
                if name in words and not words.startswith("unshare"):
                    names.setdefault(name, []).append(int(entry.name))
    inside, openvswitch = names["-m testbed.engines.emulation.sandbox_main"][0], names["ovs-vswitchd unix:"][0]
    return Target(inside, openvswitch, tuple(names["-m workloads.worker"]), experiment.fabric, experiment.scale)


def measure(names: Sequence[str], trials: int, rows: Path | None = None) -> list[Line]:
    """``trials`` of each of the kinds ``names``, of :data:`KINDS` or :data:`UNDISTURBED`. ``rows`` keeps them."""
    return [_line(name, trials, rows) for name in names]


def kept_trials(path: Path, name: str) -> list[Trial]:
    """The trials of a kind in ``path``."""
    rows = [row for row in rows_of(path) if row["sabotage"] == name]
    return [Trial(row["named"], row["verdict"], tuple(row["findings"])) for row in rows]


def _keep(path: Path, name: str, made: Trial) -> None:
    append_row(path, {"sabotage": name, "commit": git_commit(Path(__file__).parent), **asdict(made)})


def _line(name: str, trials: int, rows: Path | None) -> Line:
    kind, scenario = KINDS.get(name), UNDISTURBED.get(name)
    document = small() if scenario is None else bundled(scenario)
    done = [] if rows is None else kept_trials(rows, name)[:trials]
    for number in range(len(done), trials):
        try:
            done.append(trial(kind, document=document))
        except NotPossibleError as error:
            return Line({"sabotage": name, "trials": 0}, outcome="inconclusive", note=str(error))
        if rows is not None:
            _keep(rows, name, done[-1])
        say(
            f"{name} {number + 1}/{trials}: {'named' if done[-1].named else 'not named'}, {done[-1].verdict}; "
            f"{'; '.join(done[-1].findings)}"
        )
    verdicts = [each.verdict for each in done]
    counted = ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
    if kind is None:
        note = "; ".join(finding for each in done for finding in each.findings)
        return Line({"sabotage": name, "trials": trials, "named": "", "verdicts": counted}, note=note)
    named = sum(each.named for each in done)
    return Line(
        {"sabotage": name, "trials": trials, "named": f"{named} of {trials}", "verdicts": counted},
        f"{trials} of {trials}",
        "pass" if named == trials else "missed",
        kind.summary,
    )


def main() -> int:
    """Parse the command line, make the trials, show the table."""
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--trials", type=int, default=20, metavar="N", help="trials of each kind (default: 20)")
    parser.add_argument("--kind", action="append", choices=[*KINDS, *UNDISTURBED], help="only this one (repeatable)")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help=f"where trials are kept ({ROWS})")
    parser.add_argument("--fresh", action="store_true", help="make every trial again")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    if given.fresh:
        given.rows.unlink(missing_ok=True)
    lines = measure(given.kind or [*KINDS, "undisturbed"], given.trials, given.rows)
    show(TITLE, lines, as_json=given.json)
    return status_of(lines)


if __name__ == "__main__":
    raise SystemExit(main())
