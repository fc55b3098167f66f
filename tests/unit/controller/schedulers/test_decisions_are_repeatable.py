from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DECIDE = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import ring
from controller.decision import ClusterView, Step, StepStarted
from controller.schedulers.hedera import Hedera
from controller.schedulers.ideal import Ideal
from controller.schedulers.pfabric import PFabric
from controller.schedulers.pias import Pias
from controller.schedulers.sincronia import Sincronia
from controller.schedulers.taccl_star import TacclStar
from controller.schedulers.varys import Varys, VarysPriority
from controller.service.json_codec import to_json
from topologies.clos import clos96
fabric = clos96()
jobs = [ring(f"j{i}", fabric, list(range(i, 12, 2)), size=1e9, first_port=20000 + 1000 * i) for i in range(5)]
steps = {job.name: Step(job.name, 0, 0.0, {flow.id: 1e9 + n for n, flow in enumerate(job.flows)}) for job in jobs}
view = ClusterView(fabric, {job.name: job for job in jobs}, level_count=3, seed=3, steps=steps)
for kind in (Hedera, Ideal, PFabric, Pias, Sincronia, TacclStar, Varys, VarysPriority):
    scheduler = kind()
    first = to_json(scheduler.decide(view, StepStarted("j0", 0)))
    assert first == to_json(scheduler.decide(view, StepStarted("j0", 0))), kind
    print(kind.name, first)
"""


def test_decisions_are_the_same_byte_for_byte_in_every_process_and_when_asked_again() -> None:
    here = Path(__file__).parents[1]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DECIDE, str(here)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(here.parents[2])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 8
