"""Models of deep learning: their parameters, compute and messages."""

from __future__ import annotations

from workloads.moved_modules import forwarding

# This was a module. Its names are listed one by one: a submodule must not be taken for one of them.
__getattr__ = forwarding(
    __name__,
    {
        **{
            name: f"workloads.models.catalogue:{name}"
            for name in (
                "CATALOGUE",
                "CONVNET_FLOPS",
                "EMBEDDING_FLOPS",
                "EXPERT_FLOPS",
                "GRADIENT_ELEMENT",
                "LAYERS",
                "OVERLAP",
                "TRANSFORMER_FLOPS",
            )
        },
        **{name: f"workloads.models.model:{name}" for name in ("A100_PEAK", "Model", "PhaseTemplate")},
    },
)
