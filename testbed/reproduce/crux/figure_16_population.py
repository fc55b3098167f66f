"""The generator ``population`` of small cases for figure 16 of Crux: the jobs of the paper's testbed, placed as there.

The paper's evaluation has three jobs, small, medium and large (section 6.2): ResNet, BERT and GPT. So a job's size
says what it trains, and its communication is correlated with its size. Otherwise as
:mod:`testbed.reproduce.crux.figure_16_cases`; what differs:

=============  =====================================================================================
model          GPT on 32, 48 and 64 GPUs (figures 19, 20 and 7), BERT on 16 and 24 (figures 20 to 22), either
               BERT or ResNet, equally likely, on 8 (figures 19, 20 and 22)
compute,       those of ``crux-gpt``, ``crux-bert`` and ``crux-resnet`` of the catalogue, calibrated to the Ideal
overlap        bars of figure 20: every job of a model has the same
communication  an allreduce of the model's gradient. The gradient is of the size that takes the model on as many
               hosts as it is calibrated for, alone on its path, its calibrated time; a ring of h hosts sends
               2 (h - 1) / h of it
half hosts     a GPU behind each of the four NICs, even or odd, as figures 21 and 22 are placed here. Two such
               jobs on one host share its NICs. Hosts that are half used are taken first, so that few are
=============  =====================================================================================

Nothing here was compared with figure 16.
"""

from __future__ import annotations

from random import Random
from typing import Final

from testbed.reproduce.crux.figure_16_cases import (
    JOBS,
    SIZES,
    TRIAL_BYTES,
    Case,
    case_of,
    draw_fabric,
)
from topologies.fabric import Fabric
from workloads.build import JobSpec
from workloads.models.calibration import CALIBRATED
from workloads.models.catalogue import TRANSFORMER_FLOPS

MODELS: Final = {
    8: ("crux-resnet", "crux-bert"),
    16: ("crux-bert",),
    24: ("crux-bert",),
    32: ("crux-gpt",),
    48: ("crux-gpt",),
    64: ("crux-gpt",),
}
"""GPUs -> models, equally likely."""

_HALVES: Final = 2
"""Of a host: its even and its odd GPUs."""


def generate(seed: int, index: int) -> Case:
    """Return case ``index`` of ``seed``: the same on every machine and in any order."""
    random = Random(f"crux-fig16-population/{seed}/{index}")
    tors, fabric = draw_fabric(random)
    placements = None
    while placements is None:
        placements = _placements(fabric, tors, random)
    jobs = [_job(f"job{number}", gpus, fabric, random) for number, gpus in enumerate(placements)]
    return case_of(fabric, jobs, seed)


def _placements(fabric: Fabric, tors: int, random: Random) -> list[tuple[str, ...]] | None:
    """GPUs of five jobs, or None if they do not fit: then sizes are drawn again."""
    used = dict.fromkeys(fabric.hosts, 0)
    placed = []
    for _ in range(JOBS):
        (size,) = random.choices(tuple(SIZES), tuple(SIZES.values()))
        halves = 1 if size == 8 or (size == 16 and random.random() < 0.5) else _HALVES
        hosts = _hosts(used, tors, size * _HALVES // (8 * halves), halves, random)
        if hosts is None:
            return None
        placed.append(tuple(gpu for host in hosts for gpu in fabric.hosts[host].gpus[used[host] :: _HALVES // halves]))
        for host in hosts:
            used[host] += halves
    return placed


def _hosts(used: dict[str, int], tors: int, wanted: int, halves: int, random: Random) -> list[str] | None:
    """``wanted`` hosts with room, evenly under 2 or more ToRs, half used ones first; None where there are too few."""
    names = list(used)
    per_tor = len(names) // tors
    under = random.sample(range(tors), random.randint(2, min(tors, wanted)))
    chosen: list[str] = []
    for place, tor in enumerate(under):
        share = wanted // len(under) + (place < wanted % len(under))
        fitting = [host for host in names[tor * per_tor : (tor + 1) * per_tor] if used[host] + halves <= _HALVES]
        if len(fitting) < share:
            return None
        shuffled = random.sample(fitting, len(fitting))
        chosen += sorted(shuffled, key=lambda host: -used[host])[:share]
    return sorted(chosen, key=names.index)


def _job(name: str, gpus: tuple[str, ...], fabric: Fabric, random: Random) -> tuple[JobSpec, float]:
    """The job with a trial size of its communication, and the seconds that it is to take alone."""
    model = random.choice(MODELS[len(gpus)])
    calibrated = CALIBRATED[model]
    hosts = len({fabric.host_of_gpu[gpu] for gpu in gpus})
    spec = JobSpec(
        name,
        model,
        placement=gpus,
        compute_s=calibrated.compute_s,
        overlap=calibrated.overlap,
        flops=calibrated.compute_s * TRANSFORMER_FLOPS,
        communication_bytes=TRIAL_BYTES,
        collective="hierarchical",
    )
    return spec, calibrated.communication_s * ring_share(hosts) / ring_share(calibrated.hosts)


def ring_share(hosts: int) -> float:
    """What each of ``hosts`` sends in an allreduce over a ring of them, per byte that is reduced."""
    return 2 * (hosts - 1) / hosts
