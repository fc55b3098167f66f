"""Jobs calibrated, each alone, to the isolated utilisations behind the Ideal bars of Crux (SIGCOMM'24).

The volumes derived in :mod:`workloads.models.catalogue` leave almost nothing to contend about on 200 Gb/s,
and the paper publishes none. What it does show are the Ideal bars of figure 20: each job alone.
So a job's compute and overlap are chosen here, once, and its bytes follow from its utilisation
alone. What contention then does to it is measured, never set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from workloads.models.model import Model, PhaseTemplate


@dataclass(frozen=True, slots=True)
class Calibration:
    """The chosen numbers of one job and the layout they hold for.

    ``utilization`` is the target alone. At 1 the communication is hidden and its length is not
    seen from outside: then ``hidden_share`` says it, as communication time / compute time.
    ``hosts``, ``nics_per_host`` and ``nic_rate`` (bit/s) are the layout of the hierarchical allreduce.
    """

    derived_from: str
    compute_s: float
    overlap: float
    utilization: float
    hosts: int
    nics_per_host: int
    reason: str
    hidden_share: float | None = None
    nic_rate: float = 200e9

    @property
    def communication_s(self) -> float:
        """Communication time alone, of one iteration, at the full rate of the NICs.

        Raises ``ValueError`` if the numbers contradict the target.
        """
        if self.hidden_share is None:
            return exposed_communication(self.compute_s, self.overlap, self.utilization)
        if self.hidden_share > self.overlap:
            raise ValueError(f"hidden share {self.hidden_share:g} does not fit into overlap {self.overlap:g}")
        return self.hidden_share * self.compute_s

    @property
    def gradient_bytes(self) -> float:
        """S of the allreduce that takes ``communication_s`` alone."""
        return allreduce_bytes(self.communication_s, self.hosts, self.nics_per_host, self.nic_rate)


CALIBRATED: Final[Mapping[str, Calibration]] = MappingProxyType(
    {
        "crux-gpt": Calibration(
            "gpt",
            1.5,
            2 / 3,
            1.0,
            hosts=6,
            nics_per_host=4,
            hidden_share=0.5,
            reason="about 1.0 alone (figures 19, 20) and 1.53 s per iteration (section 2.2); communication hidden: "
            "it may start with the backward pass, which is two thirds of the compute, and takes half of the compute",
        ),
        "crux-bert": Calibration(
            "bert",
            0.6,
            0.25,
            0.80,
            hosts=4,
            nics_per_host=2,
            reason="BERT on 16 GPUs about .76 to .84 alone (figures 21, 22); iteration shorter than GPT's; "
            "overlap so that 0.30 s of communication, of which 0.15 s exposed, load its NICs 40 % of the time",
        ),
        "crux-resnet": Calibration(
            "resnet",
            0.35,
            0.25,
            0.80,
            hosts=2,
            nics_per_host=2,
            reason="ResNet on 8 GPUs about .80 alone (figures 21, 22); the shortest iteration; overlap as BERT's, "
            "0.175 s of communication, of which 0.0875 s exposed",
        ),
    }
)
"""The jobs of ``clos96``. The paper's intensity order GPT > BERT > ResNet (section 6.2) follows from them."""


def exposed_communication(compute_s: float, overlap: float, utilization: float) -> float:
    """Communication time in s that leaves a job alone at ``utilization`` of its GPUs.

    The job computes ``compute_s`` and may communicate during the last ``overlap`` of it, so
    ``utilization = compute / ((1 - overlap) compute + communication)``.
    Raises ``ValueError`` unless 0 < ``utilization`` < 1: at 1 any shorter communication would do.
    """
    if not 0 < utilization < 1:
        raise ValueError(f"utilisation {utilization:g} does not fix the communication; it must lie between 0 and 1")
    return compute_s * (1 / utilization - 1 + overlap)


def allreduce_bytes(communication_s: float, hosts: int, nics_per_host: int, nic_rate: float) -> float:
    """S in bytes of a hierarchical allreduce over ``hosts`` x ``nics_per_host`` that takes ``communication_s``."""
    if hosts < 2:
        raise ValueError("an allreduce inside one host sends nothing over the network")
    per_nic = communication_s * nic_rate / 8
    return per_nic * nics_per_host * hosts / (2 * (hosts - 1))


def calibrate(name: str, model: Model, calibration: Calibration) -> Model:
    """Return ``model`` as job ``name``: its FLOP/s kept, its compute, bytes and overlap those of ``calibration``."""
    size = calibration.gradient_bytes
    flops = calibration.compute_s * model.achieved_flops
    return replace(
        model,
        name=name,
        title=f"{model.title}, calibrated to the Ideal bars of Crux figure 20",
        flops_per_gpu=flops,
        gradient_bytes=size,
        batch=model.batch * flops / model.flops_per_gpu,
        layout=f"data parallel over {calibration.hosts} hosts x {calibration.nics_per_host} NICs; "
        f"{size / model.gradient_bytes:.1f} x the derived bytes",
        phases=(PhaseTemplate(1.0, "hierarchical", size, calibration.overlap),),
        sources=(*model.sources, f"calibration: {calibration.reason}"),
    )


@dataclass(frozen=True, slots=True)
class SensitivityRow:
    """Analytic utilisation of a job whose communication takes ``hidden_share`` x its compute time."""

    hidden_share: float
    alone: float
    slowed_2x: float
    slowed_3x: float


SHARES: Final = (0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65)


def sensitivity(overlap: float, hidden_shares: Iterable[float] = SHARES) -> tuple[SensitivityRow, ...]:
    """What the choice of a hidden share does: utilisation alone, and with 2x and 3x the communication time."""
    return tuple(
        SensitivityRow(share, *(1 / max(1.0, 1 - overlap + factor * share) for factor in (1, 2, 3)))
        for share in hidden_shares
    )
