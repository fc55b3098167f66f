"""Every bundled scenario runs on real parts, shortened: the main job and its variants."""

from __future__ import annotations

import pytest
from emulation_runs import Finished, run_until_believable

pytestmark = [pytest.mark.emulation, pytest.mark.whole_machine]

SHORT = ("--set", "measure.iterations=2", "--set", "measure.warmup=1", "--set", "checks=[]")
SHORTER = {
    "clos96-2to1.yaml": ("--scheduler", "no-priorities", "--scheduler", "crux"),
    "clos96-ports.yaml": ("--scheduler", "crux", "--set", "scale={bandwidth: 8000, time: 1}"),
    "double-sided.yaml": ("--scheduler", "crux"),
    "moe-alltoall.yaml": ("--scheduler", "crux", "--set", "scale={bandwidth: 4000, time: 3}"),
}
"""Finer messages, as ``auto`` takes, and all schedulers would take minutes. ECMP runs in the first of them."""


@pytest.fixture(
    scope="module",
    params=["clos96.yaml", "clos96-2to1.yaml", "clos96-ports.yaml", "double-sided.yaml", "moe-alltoall.yaml"],
)
def bundled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    shorter = SHORTER.get(request.param, ())
    return run_until_believable(request.param, tmp_path_factory.mktemp("bundled"), *SHORT, *shorter)


def test_every_job_has_its_iterations_under_every_scheduler(bundled: Finished) -> None:
    assert bundled.status in (0, 4), bundled.error
    for entry in bundled.summary["runs"]:
        for job in entry["jobs"]:
            assert job["iterations"] + job.get("disturbed", 0) >= 2, (entry["scheduler"], job["name"])


def test_no_packet_is_lost_or_sent_again(bundled: Finished) -> None:
    for entry in bundled.summary["runs"]:
        assert entry["fidelity"]["unintended_drops"] == 0
        assert entry["fidelity"]["retransmits"] == 0


def test_crux_leaves_no_job_slower_than_its_own_flows_explain(bundled: Finished) -> None:
    """Against the analysis of the paths that Crux decided, contention may add time; none may be missing."""
    bundled.skip_if_disturbed()
    for job in bundled.run("crux")["jobs"]:
        assert job["iteration_s"]["mean"] >= 0.97 * job["alone_s"]["decided_paths"]


def test_crux_keeps_more_gpus_busy_than_ecmp_on_the_main_job(bundled: Finished) -> None:
    if bundled.summary["scenario"] != "clos96":
        pytest.skip("only the main job promises a gain")
    bundled.skip_if_disturbed()
    assert bundled.summary["comparison"]["crux"]["gpu_utilization_points"] >= 8


def test_with_half_the_uplinks_jobs_need_levels_and_get_them_from_crux_only_with_priorities(bundled: Finished) -> None:
    if bundled.summary["scenario"] != "clos96-2to1":
        pytest.skip("on the other fabrics paths are enough")
    levels = {label: [job["level"] for job in bundled.run(label)["jobs"]] for label in ("crux", "no-priorities")}
    assert len(set(levels["crux"])) > 1 and None not in levels["crux"]
    assert set(levels["no-priorities"]) == {None}
