from __future__ import annotations

import argparse
import json

import pytest

from testbed.cli import doctor
from testbed.errors import CannotRunError
from testbed.machine import capabilities
from testbed.machine.capabilities import Capability, require_emulation

REHEARSED = {
    "scale": {"bandwidth": 1000.0, "time": 1.0, "mtu": 9000},
    "rehearsal": {"steps": [{"bandwidth": 8000.0, "busy": 0.0}, {"bandwidth": 2000.0, "busy": 0.31}], "disturbed": ""},
}
HAS_TC = Capability("tc", True, "/usr/sbin/tc", required=True, remedy="emulation needs tc")
NO_NETEM = Capability("netem", False, "", "no emulated link delay")
NO_SWITCH = Capability("ovs-vswitchd", False, "not found", "no emulation", True, "emulation needs ovs-vswitchd")
UNKNOWN = Capability("htb", None, "cannot be probed", required=True, remedy="emulation needs htb")


def diagnose(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *found: Capability,
    as_json: bool = False,
    rehearse: bool = False,
) -> tuple[int, str]:
    monkeypatch.setattr(doctor, "findings", lambda: found)
    monkeypatch.setattr(doctor, "_rehearse", lambda: REHEARSED)
    status = doctor.run(argparse.Namespace(json=as_json, no_rehearsal=not rehearse))
    return status, capsys.readouterr().out


def test_what_is_optional_does_not_stop_an_emulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, NO_NETEM, UNKNOWN)
    assert status == 0
    assert "no emulated link delay" in shown
    assert "This machine can run emulations." in shown


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


def test_what_a_rehearsal_found_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, HAS_TC, rehearse=True)
    assert status == 0
    line = "Rehearsal of 'hello': 31% of the CPU busy with rates / 2000; a run would have rates / 1000, times x 1."
    assert shown.endswith(f"{line}\n")
    document = json.loads(diagnose(monkeypatch, capsys, HAS_TC, as_json=True, rehearse=True)[1])
    assert document["rehearsal"] == REHEARSED


def test_nothing_is_rehearsed_where_nothing_can_be_emulated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = diagnose(monkeypatch, capsys, NO_SWITCH, rehearse=True)
    assert status == 3
    assert "Rehearsal" not in shown


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
