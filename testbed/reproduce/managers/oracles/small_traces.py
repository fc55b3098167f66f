"""Small traces of our own in the forms of the authors' simulators, for tests and for a run without their data.

Jobs are drawn from a seed; the applications are formulas, written out as the tables that Pollux's simulator reads. So
the authors' simulators run on them, and :mod:`.known_results` has what they gave.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

SERVERS: Final = 4
"""Servers of 4 GPUs that the small workload is for: few enough that every placement is measured."""
SEEDS: Final = (1, 2, 3)
JOBS: Final = 40
MURI_MODELS: Final = (("vgg16", 214), ("resnet18", 433), ("gpt2", 412), ("dqn", 490))
"""Model -> milliseconds of an iteration."""
LOCAL_BATCHES: Final = (8, 16, 32, 64)
BATCHES: Final = (64, 128, 256)
EPOCHS: Final = 40


@dataclass(frozen=True, slots=True)
class Application:
    """``sample_s`` of compute per sample, ``server_s`` and ``network_s`` to synchronise within and between servers."""

    name: str
    sample_s: float
    server_s: float
    network_s: float
    epoch: int
    """Iterations of the smallest batch in an epoch."""

    def step(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        """Return the seconds of a step and of its synchronisation."""
        gpus = sum(placement)
        each_s = self.network_s if len(placement) > 1 else self.server_s
        sync_s = each_s * (gpus - 1) / gpus
        return 0.01 + self.sample_s * local + sync_s, sync_s


APPLICATIONS: Final = (Application("light", 0.002, 0.01, 0.03, 300), Application("heavy", 0.004, 0.03, 0.12, 500))


def write_muri(file: Path, seed: int = 1) -> Path:
    """Write a trace for Muri's simulator to ``file``, and return it."""
    draw = random.Random(seed)
    lines = ["job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,priority"]
    submit_ms = 0
    for number in range(JOBS):
        interval_ms = round(draw.expovariate(1 / 800) * 1000)
        submit_ms += interval_ms
        model, iteration_ms = draw.choice(MURI_MODELS)
        gpus = draw.choice((1, 1, 2, 4, 8, 8, 16, 16, 32))
        iterations = round(draw.lognormvariate(8.3, 1.2) * 1000 / iteration_ms)
        cells = (
            number,
            gpus,
            submit_ms,
            iterations,
            model,
            16,
            iterations * iteration_ms,
            interval_ms,
            iteration_ms,
            0,
        )
        lines.append(",".join(map(str, cells)))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def write_pollux(folder: Path, seed: int = 1) -> Path:
    """Write applications to ``folder/traces`` and a workload for Pollux's simulator; return the workload's file."""
    for application in APPLICATIONS:
        _write_application(folder / "traces" / application.name, application)
    file = folder / "workloads" / f"small-{seed}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(_workload(seed)) + "\n", encoding="utf-8")
    return file


def _workload(seed: int) -> Iterator[str]:
    yield "name,time,application,num_replicas,batch_size"
    draw, time_s = random.Random(seed), 0
    for number in range(JOBS):
        time_s += 1 + round(draw.expovariate(1 / 250))
        application = draw.choice(APPLICATIONS).name
        gpus, batch = draw.choice(((1, 64), (2, 64), (4, 128), (6, 128), (8, 256), (12, 256)))
        yield f"{application}-{number},{time_s},{application},{gpus},{batch}"


def _write_application(folder: Path, application: Application) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "placements.csv").write_text("\n".join(_placements(application)) + "\n", encoding="utf-8")
    (folder / "scalability.csv").write_text("\n".join(_scalability(application)) + "\n", encoding="utf-8")
    for batch in BATCHES:
        text = "\n".join(_epochs(application, batch)) + "\n"
        (folder / f"validation-{batch}.csv").write_text(text, encoding="utf-8")


def _placements(application: Application) -> Iterator[str]:
    yield "placement,local_bsz,step_time,sync_time"
    for servers in range(1, SERVERS + 1):
        for placement in product(range(1, 5), repeat=servers):
            if placement == min(placement[place:] + placement[:place] for place in range(servers)):
                for local in LOCAL_BATCHES:
                    step_s, sync_s = application.step(placement, local)
                    yield f"{''.join(map(str, placement))},{local},{step_s!r},{sync_s!r}"


def _scalability(application: Application) -> Iterator[str]:
    yield "num_nodes,num_replicas,local_bsz,step_time,sync_time"
    for servers, each, local in product((6, 8), (1, 2, 4), LOCAL_BATCHES):
        step_s, sync_s = application.step((each,) * servers, local)
        yield f"{servers},{servers * each},{local},{step_s!r},{sync_s!r}"


def _epochs(application: Application, batch: int) -> Iterator[str]:
    """Training in which the noise of the gradient grows from epoch to epoch, so that larger batches help ever more."""
    yield "progress,iteration,metric,grad_sqr,grad_var"
    done = 0.0
    for epoch in range(1, EPOCHS + 1):
        norm, variance = 1.0, 4.0 + 0.2 * epoch
        done += application.epoch * (variance * BATCHES[0] / batch + norm) / (variance + norm)
        yield f"{application.epoch * epoch},{round(done)},{50 + epoch},{norm},{variance}"
