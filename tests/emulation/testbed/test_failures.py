"""Parts that fail as the scenario says: no fault, but an experiment, with packets as the flow engine has it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from emulation_runs import Finished, run_to_end

pytestmark = pytest.mark.emulation

CABLES = ("tor0->agg0", "tor0->agg1")
MEASURE = ("--set", "measure={iterations: 16, warmup: 1, time_limit: 40s}")


def run(tmp_path: Path, failures: str, *more: str, scenario: str = "hello.yaml") -> Finished:
    options = ["--scheduler", "crux", *MEASURE, "--set", f"failures={failures}", *more, "--allow-degraded"]
    done = run_to_end(scenario, tmp_path, *options)
    assert done.status in (0, 5), done.error
    reasons = done.run("crux")["fidelity"]["reasons"]
    asked_for = ("link ", "sent again", "path", "class ")
    assert not [reason for reason in reasons if any(word in reason for word in asked_for)], reasons
    return done


def outages(done: Finished) -> dict[str, dict[str, float]]:
    return {job["name"]: job["outages"] for job in done.run("crux")["jobs"]}


@pytest.mark.parametrize("cable", CABLES)
def test_flows_leave_a_cable_that_fails_go_on_and_use_it_again(cable: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"[{{link: {cable}, at: 2.05s, until: 5s}}]")
    without = [row for row in done.decisions("crux") if row["cause"] == f"{cable} failed"]
    assert len(without) == 1
    back = "->".join(reversed(cable.split("->")))
    assert not {cable, back} & {link for path in without[0]["paths"].values() for link in path}
    assert [row["cause"] for row in done.decisions("crux")][-1] == f"{cable} works again"
    (made,) = done.environment("crux")["failures"]
    assert made["part"] == cable and made["avoided_after_s"] > 0 and made["used_after_s"] > 0
    assert not any(each["count"] for each in outages(done).values())


def test_a_job_that_is_cut_off_stands_still_and_goes_on_and_the_other_does_not_notice(tmp_path: Path) -> None:
    done = run(tmp_path, "[{nic: h0n0, at: 2.05s, until: 4s}]")
    found = outages(done)
    assert (found["big"]["count"], found["big"]["restarts"], found["small"]["count"]) == (1, 0, 0)
    assert found["big"]["lost_s"] == pytest.approx(1.95, abs=0.1)
    losses = {job["name"]: job["loss"] for job in done.run("crux")["jobs"]}
    assert losses["big"]["failures_gpu_s"] > 0 and losses["small"]["failures_gpu_s"] == 0


def test_a_job_whose_host_has_failed_starts_again_after_the_timeout(tmp_path: Path) -> None:
    done = run(tmp_path, "[{host: h0, at: 2.05s, until: 3s}]", "--set", "recovery={timeout: 1.5s}")
    assert {(each["count"], each["restarts"]) for each in outages(done).values()} == {(1, 1)}
    assert all(each["lost_s"] == pytest.approx(1.5, abs=0.2) for each in outages(done).values())


def test_a_nic_with_two_ports_goes_on_over_the_other_one(tmp_path: Path) -> None:
    done = run(tmp_path, "[{link: h0n0p0->tor0, at: 4s, until: 8s}]", scenario="hpn-failures.yaml")
    assert not any(each["count"] for each in outages(done).values())
    row = next(row for row in done.decisions("crux") if row["cause"] == "h0n0p0->tor0 failed")
    links = {link for path in row["paths"].values() for link in path}
    assert "h0n0p1->tor1" in links and not {"h0n0p0->tor0", "tor0->h0n0p0"} & links


def test_a_cable_with_less_rate_and_losses_is_no_fault(tmp_path: Path) -> None:
    done = run(tmp_path, "[{link: h0n0p0->tor0, rate: 0.5, loss: 0.01, at: 2.05s, until: 5s}]")
    # All rows count here, also those of iterations that other guests of the machine disturbed.
    rows = [row for row in done.rows("crux", "iterations.csv") if row["job"] == "big"]
    spans = [(float(row["start_s"]), float(row["end_s"])) for row in rows]
    during = median(end - begin for begin, end in spans if begin > 2.2 and end < 5.0)
    later = median(end - begin for begin, end in spans if begin > 5.2)
    assert during > 1.1 * later
