"""Jobs as values: models, collectives, placement, analysis; the worker process is the one adapter."""

from __future__ import annotations

from workloads.moved_modules import ALL_OTHERS, accept

accept(
    {
        "workloads.managers.cluster": {ALL_OTHERS: "workloads.managers.cluster_state"},
        "workloads.managers.points": {
            ALL_OTHERS: "workloads.managers.interfaces",
            "Turn": "workloads.managers.interfaces:QueuedJob",
            "Want": "workloads.managers.interfaces:PlacementRequest",
            "Wish": "workloads.managers.interfaces:PolicyAction",
        },
        "workloads.managers.structure": {ALL_OTHERS: "workloads.managers.gpu_index"},
    }
)
