"""Which kernels of a GPU trace communicate: by the names that their libraries give them, or by what surrounds them.

What communicates must not pass for compute: an iteration would be too busy, and nothing would say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

FAMILIES: Final[Mapping[str, re.Pattern[str]]] = {
    "MSCCL++": re.compile(r"mscclpp", re.IGNORECASE),
    "MSCCL": re.compile(r"msccl", re.IGNORECASE),
    "RCCL": re.compile(r"\brccl", re.IGNORECASE),
    "NCCL": re.compile(r"^(void )?nccl|\bncclDevKernel|\bncclKernel", re.IGNORECASE),
    "UCCL": re.compile(r"\buccl(_ep)?\b|\buccl::", re.IGNORECASE),
    "DeepEP": re.compile(r"\bdeep_ep::(intranode|internode|internode_ll|hybrid_ep)\b"),
    "NVSHMEM": re.compile(r"nvshmem", re.IGNORECASE),
    "userbuffers": re.compile(r"\buserbuffers_"),
    "custom allreduce": re.compile(r"\bcross_device_reduce_|(one|two)ShotAllReduce|allreduce_fusion_kernel"),
    "symmetric memory": re.compile(r"(multimem|one_shot|two_shot)_\w*(all_reduce|all_gather|reduce_scatter)"),
}
"""Library -> what the names of its kernels have, as in the sources of each; the first that fits counts."""

UNKNOWN: Final = "unknown library"
_WORDS: Final = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv)(?-i:(?![a-z]))"
    r"|(?<![a-z])(p2p|isend|irecv)(?![a-z])",
    re.IGNORECASE,
)
_OF_FRAMEWORKS: Final = re.compile(r"\b(at|at_cuda_detail|cub|thrust|cutlass|cudnn|triton|fbgemm_gpu)\w*::")
"""Kernels of these libraries compute, whatever their template arguments are called."""
COPY: Final = re.compile(r"memcpy (ptop|p2p|peer)", re.IGNORECASE)
"""Copies from GPU to GPU, as CUPTI and ROCm name them."""
_ARGUMENTS: Final = ("Collective name", "Process Group Name", "Process Group Ranks", "Group size")
"""What PyTorch writes at kernels that a process group has launched."""


def family_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the library of a kernel that communicates, :data:`UNKNOWN` for one that looks so; nothing for compute."""
    head = name.replace("(anonymous namespace)::", "").partition("(")[0].partition("<")[0]
    for family, pattern in FAMILIES.items():
        if pattern.search(head):
            return family
    if any(key in arguments for key in _ARGUMENTS):
        return UNKNOWN
    return UNKNOWN if _WORDS.search(head) and not _OF_FRAMEWORKS.search(head) else ""


def streams_of(kernels: Iterable[tuple[Any, bool]]) -> frozenset[Any]:
    """Return the streams, of (stream, communicates) of each kernel, on which most kernels communicate."""
    counts: dict[Any, list[int]] = {}
    for stream, communicates in kernels:
        if stream is not None:
            found = counts.setdefault(stream, [0, 0])
            found[communicates] += 1
    return frozenset(stream for stream, (computing, talking) in counts.items() if talking > computing)
