from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from testbed.cli import doctor
from testbed.errors import CannotRunError
from testbed.machine import capabilities
from testbed.machine.budget import Budget, BudgetPoint, constant
from testbed.machine.capabilities import Capability, require_emulation

MEASURE = "testbed.engines.emulation.forwarding_budget.measure_budget"
HAS_TC = Capability("tc", True, "/usr/sbin/tc", required=True, remedy="emulation needs tc")
NO_NETEM = Capability("netem", False, "", "no emulated link delay")
NO_SWITCH = Capability("ovs-vswitchd", False, "not found", "no emulation", True, "emulation needs ovs-vswitchd")
UNKNOWN = Capability("htb", None, "cannot be probed", required=True, remedy="emulation needs htb")


def diagnose(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *found: Capability,
    as_json: bool = False,
    measure: bool = False,
) -> tuple[int, str]:
    monkeypatch.setattr(doctor, "findings", lambda: found)
    status = doctor.run(argparse.Namespace(json=as_json, measure=measure))
    return status, capsys.readouterr().out


def test_what_is_optional_does_not_stop_an_emulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, NO_NETEM, UNKNOWN)
    assert status == 0
    assert "no emulated link delay" in shown
    assert "This machine can run emulations." in shown
    assert "packets x switches per second" in shown


def test_the_first_thing_that_stops_an_emulation_is_the_last_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, NO_NETEM, NO_SWITCH)
    assert status == 3
    assert shown.endswith("\nemulation needs ovs-vswitchd\n")


def test_json_is_one_document_with_the_same_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, NO_SWITCH, UNKNOWN, as_json=True)
    document = json.loads(shown)
    assert status == 3
    assert (document["can_emulate"], document["reason"]) == (False, "emulation needs ovs-vswitchd")
    assert [row["present"] for row in document["findings"]] == [True, False, None]


def test_a_measured_budget_is_shown_and_planned_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    budget = Budget((BudgetPoint(9000, 48, 20_000.0, 0.012), BudgetPoint(1500, 8, 40_000.0)), "measured today")
    monkeypatch.setattr(MEASURE, lambda engine, show, datapath: budget)
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, measure=True)
    assert status == 0
    for text in ("20,000", "1500", "1.2%", "Budget (measured today): 15,000 packets x switches per second", "Kept in"):
        assert text in shown
    document = json.loads(diagnose(monkeypatch, capsys, HAS_TC, as_json=True)[1])
    assert document["budget"] == budget.document()
    assert document["budget_packet_hops_per_s"] == pytest.approx(15_000)


def test_every_datapath_of_the_machine_is_measured_and_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "datapaths_here", lambda: {"kernel": "no module", "nftables": "", "userspace": ""})
    rates = {"nftables": 70_000.0, "userspace": 20_000.0}
    monkeypatch.setattr(MEASURE, lambda engine, show, datapath: constant(rates[datapath], f"measured {datapath}"))
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, measure=True)
    assert status == 0
    for text in ("nftables: forwarded with 35%", "70,000", "userspace: forwarded with 35%", "20,000"):
        assert text in shown
    assert "Datapath nftables: the best here; not kernel: no module. Budget (measured nftables)" in shown
    document = json.loads(diagnose(monkeypatch, capsys, HAS_TC, as_json=True)[1])
    assert (document["datapath"], document["budget"]) == ("nftables", document["budgets"]["nftables"])
    assert document["budgets"]["userspace"]["source"] == "measured userspace"


def test_nothing_is_measured_where_nothing_can_be_emulated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MEASURE, lambda engine, show, datapath: pytest.fail("measured"))
    assert diagnose(monkeypatch, capsys, NO_SWITCH, measure=True)[0] == 3


def test_an_ordinary_user_is_told_to_use_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities.os, "geteuid", lambda: 1000)
    with pytest.raises(CannotRunError) as error:
        require_emulation()
    assert str(error.value) == "emulation needs root: run with sudo"


@pytest.mark.parametrize("program", ["tc", "ovs-vsctl", "ovs-vswitchd", "mnexec"])
def test_a_missing_program_is_named_with_the_way_to_get_it(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities.os, "geteuid", lambda: 0)
    monkeypatch.setattr(capabilities, "find_spec", lambda name: object())
    monkeypatch.setattr(
        capabilities.shutil, "which", lambda name, path=None: None if name == program else f"/bin/{name}"
    )
    with pytest.raises(CannotRunError) as error:
        require_emulation()
    line = str(error.value)
    assert line.startswith(f"emulation needs {program}, which is not here: run 'make setup'")
    assert "\n" not in line


def test_a_python_that_does_not_see_mininet_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities.os, "geteuid", lambda: 0)
    monkeypatch.setattr(capabilities.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(capabilities, "find_spec", lambda name: None)
    with pytest.raises(CannotRunError, match=r"^emulation needs Mininet, which this Python cannot import"):
        require_emulation()


@pytest.mark.parametrize(("lacks", "named"), [("htb", "'htb'"), ("u32", "'u32'"), ("veth", "'veth'")])
def test_a_kernel_without_shaping_is_refused(lacks: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    probed = {"veth": True, "htb": True, "u32": True, "prio": False, "ets": False, "netem": False, lacks: False}
    monkeypatch.setattr(capabilities, "_needed_programs", lambda: ())
    monkeypatch.setattr(capabilities, "probe_in_namespace", lambda: probed)
    with pytest.raises(CannotRunError, match=f"^emulation needs {named} of the kernel"):
        require_emulation()


def test_a_place_where_namespaces_are_forbidden_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_needed_programs", lambda: ())
    monkeypatch.setattr(capabilities, "probe_in_namespace", dict)
    with pytest.raises(CannotRunError, match="network namespaces"):
        require_emulation()


def test_looking_at_this_machine_gives_every_finding_a_name_of_its_own() -> None:
    names = [finding.name for finding in capabilities.findings()]
    assert len(names) == len(set(names))
    assert {"root", "Mininet", "htb", "datapath nftables", "cores", "stolen CPU"} <= set(names)
