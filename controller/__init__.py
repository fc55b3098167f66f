"""Schedulers, the switch rules that carry out their decisions, and the service that offers both."""

from __future__ import annotations

from workloads.moved_modules import ALL_OTHERS, accept

accept(
    {
        "controller.cluster_views": {ALL_OTHERS: "controller.decider"},
        "controller.ecmp": {
            ALL_OTHERS: "controller.schedulers.ecmp",
            "ecmp_path": "controller.ecmp_hash:ecmp_path",
            "with_default_paths": "controller.ecmp_hash:with_default_paths",
        },
        "controller.registry": {ALL_OTHERS: "controller.schedulers.registry"},
        "controller.wire": {
            "decision_to_json": "controller.service.json_codec:to_json",
            ALL_OTHERS: "controller.service.json_codec",
        },
    }
)
