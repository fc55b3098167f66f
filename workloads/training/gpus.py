"""GPUs by their data sheets, and the share of their peak that training is published to reach.

Rates are dense: without sparsity. NVLink is per direction. The share of peak is one number per GPU and precision: the
highest that MosaicML published without recomputation at 2,048 tokens on one host (llm-foundry,
``scripts/train/benchmarking/README.md``, May 2023; fully sharded inside the host, fused attention).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

PRECISIONS: Final[Mapping[str, float]] = MappingProxyType({"bf16": 2.0, "fp8": 1.0})
"""Name -> bytes of an element that layers multiply."""
NVLINK_SHARE: Final = 0.8
"""Of the sheet's rate that collectives inside a host reach: nccl-tests reports a bus bandwidth of 230 to 240 of 300
GB/s on eight A100 and of 360 to 370 of 450 GB/s on eight H100, in rings."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """``bf16`` and ``fp8`` in FLOP/s, ``memory`` in bytes, ``memory_rate`` in bytes/s, ``nvlink`` in bit/s one way.

    ``share_bf16`` and ``share_fp8`` of those peaks are reached; ``fp8`` is 0 where there is none.
    """

    name: str
    title: str
    bf16: float
    fp8: float
    memory: float
    memory_rate: float
    nvlink: float
    share_bf16: float
    share_fp8: float
    sources: tuple[str, ...]

    def peak(self, precision: str) -> float:
        """FLOP/s in ``precision``; ``ValueError`` if the GPU has no such units."""
        if precision not in PRECISIONS:
            raise ValueError(f"precision is '{precision}', expected {' or '.join(PRECISIONS)}")
        found = self.fp8 if precision == "fp8" else self.bf16
        if not found:
            raise ValueError(f"precision is '{precision}', which {self.title} does not have, expected bf16")
        return found

    def achieved(self, precision: str) -> float:
        """FLOP/s that layers reach while they compute."""
        return self.peak(precision) * (self.share_fp8 if precision == "fp8" else self.share_bf16)

    def share_in_words(self, precision: str) -> str:
        """``46.4 % of the bf16 peak of H100 SXM, as published``."""
        share = self.achieved(precision) / self.peak(precision)
        return f"{100 * share:.1f} % of the {precision} peak of {self.title}, as published"

    def ring_s(self, ranks: int, size: float) -> float:
        """Seconds of an allreduce of ``size`` bytes by ``ranks`` of a host, in a ring over NVLink."""
        return 8 * (2 * (ranks - 1) / ranks * size) / (NVLINK_SHARE * self.nvlink)


_MOSAIC = "share of peak: llm-foundry, scripts/train/benchmarking/README.md"
_A100_SHARE = 0.5957
"""MPT-13B, 2,048 tokens, eight A100 80 GB, no recomputation."""
_H100_SHARE = 0.4644
"""MPT-7B, 2,048 tokens, eight H100, bf16, no recomputation."""
_H100_FP8_SHARE = 0.277
"""MPT-3B, 2,048 tokens, eight H100, fp8, no recomputation."""

GPUS: Final[Mapping[str, Gpu]] = MappingProxyType(
    {
        gpu.name: gpu
        for gpu in (
            Gpu(
                "a100",
                "A100 SXM 80 GB",
                312e12,
                0.0,
                80e9,
                2.039e12,
                2.4e12,
                _A100_SHARE,
                0.0,
                ("NVIDIA A100 data sheet", _MOSAIC),
            ),
            Gpu(
                "h100",
                "H100 SXM",
                989.4e12,
                1978.9e12,
                80e9,
                3.35e12,
                3.6e12,
                _H100_SHARE,
                _H100_FP8_SHARE,
                ("NVIDIA H100 data sheet", _MOSAIC),
            ),
            Gpu(
                "h800",
                "H800 SXM",
                989.4e12,
                1978.9e12,
                80e9,
                3.35e12,
                1.6e12,
                _H100_SHARE,
                _H100_FP8_SHARE,
                ("NVIDIA H100 data sheet; NVLink: DeepSeek-V3 (2024), section 3.2.2", "shares: as H100, the same chip"),
            ),
            Gpu(
                "h200",
                "H200 SXM",
                989.4e12,
                1978.9e12,
                141e9,
                4.8e12,
                3.6e12,
                _H100_SHARE,
                _H100_FP8_SHARE,
                ("NVIDIA H200 data sheet", "shares: as H100, the same chip"),
            ),
            Gpu(
                "b200",
                "B200 SXM",
                2250e12,
                4500e12,
                180e9,
                8e12,
                7.2e12,
                _H100_SHARE,
                _H100_FP8_SHARE,
                ("NVIDIA HGX B200 data sheet", "shares: assumed as H100"),
            ),
        )
    }
)
"""Name -> GPU."""
