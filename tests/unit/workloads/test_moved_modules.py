"""Plug-ins written before modules moved go on for one release, and are told the new path."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOVED = [
    ("controller.cluster_views", "Decider", "controller.decider", "Decider"),
    ("controller.ecmp", "Ecmp", "controller.schedulers.ecmp", "Ecmp"),
    ("controller.ecmp", "ecmp_path", "controller.ecmp_hash", "ecmp_path"),
    ("controller.registry", "create", "controller.schedulers.registry", "create"),
    ("controller.wire", "decision_to_json", "controller.service.json_codec", "to_json"),
    ("workloads.managers.cluster", "ClusterState", "workloads.managers.cluster_state", "ClusterState"),
    ("workloads.managers.points", "Policy", "workloads.managers.interfaces", "Policy"),
    ("workloads.managers.points", "Turn", "workloads.managers.interfaces", "QueuedJob"),
    ("workloads.managers.points", "Want", "workloads.managers.interfaces", "PlacementRequest"),
    ("workloads.managers.points", "Wish", "workloads.managers.interfaces", "PolicyAction"),
    ("workloads.managers.structure", "Structure", "workloads.managers.gpu_index", "Structure"),
    ("workloads.models", "CATALOGUE", "workloads.models.catalogue", "CATALOGUE"),
    ("workloads.models", "Model", "workloads.models.model", "Model"),
]


@pytest.mark.parametrize(("module", "name", "home", "today"), MOVED)
def test_an_old_path_leads_to_the_new_one_and_says_so(module: str, name: str, home: str, today: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{name} is now {home}\.{today};") as warned:
        found = getattr(import_module(module), name)
    assert found is getattr(import_module(home), today)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("module", sorted({module for module, *_ in MOVED}))
def test_a_name_that_no_module_had_is_not_found(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        import_module(module).nothing  # noqa: B018


def test_the_warning_points_at_the_import_of_the_plug_in() -> None:
    program = "from controller.ecmp import ecmp_path\nfrom workloads.managers.points import Want\n"
    command = [sys.executable, "-W", "default", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if "is now" in line]
    assert [line.partition(": ")[0] for line in lines] == ["<string>:1", "<string>:2"]


def test_a_module_that_never_was_stays_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("controller.never")


def test_the_package_of_models_still_has_its_modules() -> None:
    from workloads.models import catalogue, convnets

    assert (catalogue.__name__, convnets.__name__) == ("workloads.models.catalogue", "workloads.models.convnets")
