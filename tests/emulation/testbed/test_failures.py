"""A cable between switches that fails as the scenario says: no fault, but an experiment, decided anew each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import run_to_end

pytestmark = pytest.mark.emulation

CABLES = ("tor0->agg0", "tor0->agg1")


@pytest.mark.parametrize("cable", CABLES)
def test_flows_leave_a_cable_that_fails_go_on_and_use_it_again(cable: str, tmp_path: Path) -> None:
    options = ["--scheduler", "crux", "--set", "measure={iterations: 16, warmup: 1, time_limit: 40s}"]
    failures = f"link_failures=[{{link: {cable}, at: 2.05s, until: 5s}}]"
    done = run_to_end("hello.yaml", tmp_path, *options, "--set", failures, "--allow-degraded")
    assert done.status in (0, 5), done.error
    without = [row for row in done.decisions("crux") if row["cause"] == f"{cable} failed"]
    assert len(without) == 1
    back = "->".join(reversed(cable.split("->")))
    assert not {cable, back} & {link for path in without[0]["paths"].values() for link in path}
    assert [row["cause"] for row in done.decisions("crux")][-1] == f"{cable} works again"
    (made,) = done.environment("crux")["link_failures"]
    assert made["link"] == cable and made["avoided_after_s"] > 0 and made["used_after_s"] > 0
    reasons = done.run("crux")["fidelity"]["reasons"]
    assert not [reason for reason in reasons if "link " in reason or "sent again" in reason or "path" in reason], (
        reasons
    )
