"""The same numbers with and without the compiler: what is compiled also runs as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="the extra 'fast' is not installed: there is nothing to compare")

ROOT = Path(__file__).parents[4]
WITHOUT_COMPILER = "import sys; sys.modules['numba'] = None\n"
JOBS = """
import random
from workloads.periodic_job import PeriodicJob
draw = random.Random(21)
def jobs(count):
    for _ in range(count):
        compute_s, links = draw.uniform(0.1, 2.0), draw.sample(range(6), draw.randint(1, 3))
        loads = {link: draw.uniform(0.05, 1.5) for link in links}
        lead_s, gpus = compute_s * draw.random(), draw.choice([1.0, 8.0, 64.0])
        yield PeriodicJob(compute_s, lead_s, loads, gpus, 0.5 * compute_s, draw.randint(0, 3), 0.0)
"""
SETTLE = """
from testbed.fluid.steady_state import settle
for count in (1, 2, 5, 9, 12):
    settled = settle(list(jobs(count)), packs=[0, 0] if count == 2 else ())
    print([value.hex() for value in (*settled.rates, settled.horizon_s)])
"""
SIMULATE = """
from testbed.fluid.periodic import simulate
for count in (1, 3, 6):
    made = list(jobs(count))
    print(simulate(made, [job.level for job in made]))
"""
FLOW_ENGINE = """
import tempfile
from pathlib import Path
from testbed.api import run_scenario
with tempfile.TemporaryDirectory() as place:
    result = run_scenario("hello.yaml", engine="flow", out=place, overrides=["sharing=SHARING"])
    for scheduler in ("ecmp", "crux"):
        for name in ("iterations.csv", "links.csv"):
            print(Path(result.directory, scheduler, name).read_text())
"""

PACKETS = """
import sys
sys.path.insert(0, "tests/unit/testbed/packets")
from networks import PACKET, RATE, ends, network, send
made = network({f"l{number}": RATE / (1 + number) for number in range(5)})
places = [send(made, [f"l{place % 5}", f"l{(place + 2) % 5}"], place / 7, level=place % 3) for place in range(1, 100)]
made.weigh(places[-1], (1.0, 3.0), 5 * PACKET)
made.set_limit(places[-2], RATE / 9)
print({place: when.hex() for place, when in ends(made, until=1e4).items()})
print({where: moved.hex() for where, moved in made.take_bytes().items()}, made.take_bytes())
"""
RDMA = """
from pathlib import Path
from tempfile import TemporaryDirectory
from benchmarks.rdma.traffic import Traffic, experiment_of, network_model
from testbed.experiment.network_model import Buffers
for transport in ("unlimited", "dcqcn", "dctcp", "hpcc"):
    with TemporaryDirectory() as folder:
        model = network_model(transport, load_balancing="spray", buffers=Buffers(3e5, 0.5))
        traffic = Traffic(experiment_of(Path(folder), model, hosts=4, tors=2, aggregations=2))
    for source in ("h0", "h1"):
        traffic.send(traffic.way(source, "h2"), 4e5)
    traffic.run()
    print(traffic.ended, traffic.network.counted())
"""


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


PROGRAMS = {
    "settle": JOBS + SETTLE,
    "simulate": JOBS + SIMULATE,
    "run": FLOW_ENGINE.replace("SHARING", "max-min"),
    "run in proportion": FLOW_ENGINE.replace("SHARING", "proportional"),
    "simulation": FLOW_ENGINE.replace("flow", "simulation").replace("SHARING", "max-min"),
    "packets": PACKETS,
    "rdma": RDMA,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_digit_is_the_same_without_the_compiler(program: str) -> None:
    compiled, plain = printed(program), printed(WITHOUT_COMPILER + program)
    assert compiled == plain and len(compiled) > 20


CALLER = """
from testbed.fluid.compiled import compiled
from testbed.fluid.{called} import answer
@compiled
def ask():
    return answer()
"""
CALLED = """
from testbed.fluid.compiled import compiled
@compiled
def answer():
    return {value}
"""


def test_kept_code_is_not_used_once_a_function_compiled_into_it_has_changed(tmp_path: Path) -> None:
    """numba itself looks at the caller's file alone."""
    package = tmp_path / "testbed"
    (package / "fluid").mkdir(parents=True)
    for name in ("__init__.py", "fluid/__init__.py"):
        (package / name).touch()
    (package / "fluid" / "compiled.py").write_text((ROOT / "testbed" / "fluid" / "compiled.py").read_text())
    (package / "fluid" / "asking.py").write_text(CALLER.format(called="answering"))
    answers = []
    for value in (41, 4242):
        (package / "fluid" / "answering.py").write_text(CALLED.format(value=value))
        program = [sys.executable, "-c", "from testbed.fluid.asking import ask; print(ask())"]
        answers.append(subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip())
    assert answers == ["41", "4242"]


NAMED = """
import sys
from typing import NamedTuple
import numpy as np
from testbed.fluid.compiled import compiled
class {name}(NamedTuple):
    values: np.ndarray
@compiled
def answer(given):
    return given.values.sum()
if __name__ != "__main__":
    print(answer({name}(np.ones(2))))
"""


def test_kept_code_for_a_type_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    """As after an upgrade in place: the index of kept code names the types of the old version."""
    for name in ("Old", "New"):
        (tmp_path / "typed.py").write_text(NAMED.format(name=name), "utf-8")
        path = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
        done = subprocess.run(
            [sys.executable, "-c", "import typed"], cwd=tmp_path, env=path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")
