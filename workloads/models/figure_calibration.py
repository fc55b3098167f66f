"""The jobs of figures 7 and 19 to 22 of Crux (SIGCOMM'24), calibrated on the Ideal bars alone.

In four steps, none of which looks at a bar with contention:

1. An Ideal bar is the GPU-weighted mean of what its jobs use alone: ``sum n u / sum n``. Where a figure has
   several bars of the same jobs, their isolated utilisations ``u`` are the least-squares solution
   (:func:`solve`). What the bars leave open is set, and :data:`GIVEN` has the values and reasons.
2. Compute and overlap of a job are those of :data:`workloads.models.calibration.CALIBRATED`.
3. ``u`` then fixes the communication of a job alone (:func:`workloads.models.calibration.exposed_communication`), and
   the layout of the figure's placement its bytes.
4. GPT is hidden when alone, so its bar is only a bound. See :data:`HIDDEN_SHARE`.

The scenario files ``crux-fig*.yaml`` carry the bytes; a test compares them with what is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from workloads.models.calibration import CALIBRATED, Calibration

OWN_COLLISION: Final = 3
"""Connections of GPT on its most crowded link under ECMP, the job alone: 3 in 19 of 30 hash seeds for GPT-48 on the
unbonded testbed and in 16 of 30 for GPT-32, more in 6 and 4, fewer in the others."""

HIDDEN_SHARE: Final = CALIBRATED["crux-gpt"].overlap / OWN_COLLISION
"""GPT's communication time / compute time: the longest that GPT alone still hides where its own connections collide.

In the paper's testbed a job alone is on ECMP paths too, and the Ideal bars then show GPT at 1.0 (figure 19,
and 1.53 s with little spread in figure 7). So the communication must fit into the overlap when a hash has put
three of the job's own connections on one link: overlap / 3.
"""


@dataclass(frozen=True, slots=True)
class FigureInputs:
    """What no Ideal bar says, for all figures alike."""

    bert_overlap: float
    """Share of BERT's compute that its communication may lie beside."""
    resnet_overlap: float
    """The same of ResNet's."""
    gpt_hidden_share: float
    """GPT's communication time / compute time; it is hidden when GPT is alone."""
    channels: int
    """Connections of a job per pair of ports."""
    resnet_compute_s: float
    """Compute of ResNet in one iteration; its utilisation alone stays, so its communication grows with it."""

    def overlap(self, kind: str) -> float | None:
        """The overlap of a kind of job, None where it is not one of these inputs."""
        return {"bert": self.bert_overlap, "resnet": self.resnet_overlap}.get(kind)

    def compute_s(self, kind: str) -> float | None:
        """The compute of a kind of job, None where it is not one of these inputs."""
        return {"resnet": self.resnet_compute_s}.get(kind)


A_PRIORI: Final = FigureInputs(
    CALIBRATED["crux-bert"].overlap,
    CALIBRATED["crux-resnet"].overlap,
    HIDDEN_SHARE,
    channels=1,
    resnet_compute_s=CALIBRATED["crux-resnet"].compute_s,
)
"""Chosen before anything was compared."""

FITTED: Final = FigureInputs(
    bert_overlap=0.25, resnet_overlap=0.125, gpt_hidden_share=1 / 3, channels=4, resnet_compute_s=0.25
)
"""Fitted to the ten bars without Crux: ``testbed reproduce crux-calibration`` (3.2 points off, root mean square)."""

EQUALLY_FITTED: Final = (
    FITTED,
    FigureInputs(bert_overlap=0.5, resnet_overlap=0, gpt_hidden_share=1 / 2, channels=8, resnet_compute_s=0.175),
    FigureInputs(bert_overlap=0.5, resnet_overlap=0, gpt_hidden_share=1 / 2, channels=8, resnet_compute_s=0.5),
    FigureInputs(bert_overlap=0.5, resnet_overlap=0.125, gpt_hidden_share=1 / 2, channels=8, resnet_compute_s=0.175),
)
"""All points of that fit within 10 % of the least loss: the bars without Crux do not tell them apart."""


@dataclass(frozen=True, slots=True)
class IdealBar:
    """One Ideal bar: ``utilization``, and kind of job -> GPUs of all such jobs together."""

    utilization: float
    gpus: Mapping[str, int]


IDEAL_BARS: Final[Mapping[str, IdealBar]] = MappingProxyType(
    {
        "crux-fig19-2": IdealBar(0.85, {"gpt": 32, "bert": 16}),
        "crux-fig19-3": IdealBar(0.81, {"gpt": 32, "bert": 24}),
        "crux-fig19-4": IdealBar(0.77, {"gpt": 32, "bert": 32}),
        "crux-fig20": IdealBar(0.82, {"gpt": 48, "bert": 32, "resnet": 16}),
        "crux-fig21-1": IdealBar(0.83, {"bert": 16, "resnet": 4}),
        "crux-fig21-2": IdealBar(0.82, {"bert": 16, "resnet": 8}),
        "crux-fig21-3": IdealBar(0.82, {"bert": 16, "resnet": 12}),
        "crux-fig22-8": IdealBar(0.78, {"resnet": 8, "bert": 8}),
        "crux-fig22-16": IdealBar(0.75, {"resnet": 8, "bert": 16}),
        "crux-fig22-24": IdealBar(0.72, {"resnet": 8, "bert": 24}),
    }
)
"""Scenario -> the paper's Ideal bar."""

GROUPS: Final = (
    ("crux-fig19-2", "crux-fig19-3", "crux-fig19-4"),
    ("crux-fig20",),
    ("crux-fig21-1", "crux-fig21-2", "crux-fig21-3"),
    ("crux-fig22-8",),
    ("crux-fig22-16",),
    ("crux-fig22-24",),
)
"""Bars of the same jobs, solved together. BERT has another size in each bar of figure 22."""

RESNET_OF_FIGURE_22: Final = 0.80
"""Between ResNet-4 of figure 21 (.79) and ResNet-8 of figure 20 (.82): figure 22 does not distinguish its two jobs."""

GIVEN: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "crux-fig19-2": {"gpt": 1.0},
        "crux-fig20": {"gpt": 1.0},
        "crux-fig22-8": {"resnet": RESNET_OF_FIGURE_22},
        "crux-fig22-16": {"resnet": RESNET_OF_FIGURE_22},
        "crux-fig22-24": {"resnet": RESNET_OF_FIGURE_22},
    }
)
"""First scenario of a group -> what is set. Left free, the bars of figure 19 give GPT 1.01 and BERT .53: GPT is at its
bound. Figure 20 also takes over BERT from figure 19 (:func:`isolated_utilizations`)."""

LAYOUTS: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = MappingProxyType(
    {
        "crux-fig19": {"gpt": (4, 4), "bert": (2, 2)},
        "crux-fig20": {"gpt": (6, 4), "bert": (4, 2), "resnet": (2, 2)},
        "crux-fig21": {"bert": (4, 4), "resnet": (2, 2)},
        "crux-fig22-8": {"bert": (2, 4), "resnet": (2, 4)},
        "crux-fig22-16": {"bert": (4, 4), "resnet": (2, 4)},
        "crux-fig22-24": {"bert": (6, 4), "resnet": (2, 4)},
        "crux-fig7": {"gpt": (8, 4), "bert": (4, 2)},
    }
)
"""Scenario, or what its name begins with -> kind of job -> hosts and NICs per host of its allreduce."""


def solve(bars: Sequence[IdealBar], given: Mapping[str, float]) -> dict[str, float]:
    """Return the isolated utilisations that fit ``bars`` best in the least-squares sense, those ``given`` kept.

    Raises ``ValueError`` if the bars do not determine them.
    """
    unknown = [kind for kind in bars[0].gpus if kind not in given]
    shares = np.array([[bar.gpus[kind] / sum(bar.gpus.values()) for kind in unknown] for bar in bars])
    known = [sum(bar.gpus[kind] * value for kind, value in given.items()) / sum(bar.gpus.values()) for bar in bars]
    left = np.array([bar.utilization for bar in bars]) - np.array(known)
    solution, _, rank, _ = np.linalg.lstsq(shares, left, rcond=None)
    if rank < len(unknown):
        raise ValueError(f"{len(bars)} bars do not determine the utilisations of {', '.join(unknown)}")
    return {**given, **dict(zip(unknown, solution.tolist(), strict=True))}


def isolated_utilizations() -> dict[str, dict[str, float]]:
    """Return scenario -> kind of job -> its utilisation alone.

    BERT of figure 19 is also that of figures 20 and 7, where it likewise leaves its ToR.
    """
    found: dict[str, dict[str, float]] = {}
    for group in GROUPS:
        given = dict(GIVEN.get(group[0], {}))
        if group[0] == "crux-fig20":
            given["bert"] = found["crux-fig19-2"]["bert"]
        solved = solve([IDEAL_BARS[name] for name in group], given)
        found |= {name: solved for name in group}
    found["crux-fig7"] = {"gpt": 1.0, "bert": found["crux-fig19-2"]["bert"]}
    return found


def calibrations(scenario: str, inputs: FigureInputs = FITTED) -> dict[str, Calibration]:
    """Return kind of job -> its calibration in ``scenario`` with ``inputs``."""
    layouts = next(layout for name, layout in LAYOUTS.items() if scenario == name or scenario.startswith(f"{name}-"))
    utilizations = isolated_utilizations()[scenario]
    return {kind: _calibration(kind, utilizations[kind], inputs, *layout) for kind, layout in layouts.items()}


def _calibration(kind: str, utilization: float, inputs: FigureInputs, hosts: int, nics_per_host: int) -> Calibration:
    base = CALIBRATED[f"crux-{kind}"]
    hidden = inputs.gpt_hidden_share if base.hidden_share is not None else None
    overlap, compute_s = inputs.overlap(kind), inputs.compute_s(kind)
    return replace(
        base,
        compute_s=base.compute_s if compute_s is None else compute_s,
        utilization=utilization,
        overlap=base.overlap if overlap is None else overlap,
        hosts=hosts,
        nics_per_host=nics_per_host,
        hidden_share=hidden,
    )
