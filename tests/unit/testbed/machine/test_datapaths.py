"""Which datapath an emulation takes, and how a machine is found to have or to lack one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import BadInputError
from testbed.machine import capabilities
from testbed.machine.datapaths import ONLY, choose, only
from topologies.datapath import DATAPATHS, HASHING_DATAPATHS, Datapath

HERE = st.fixed_dictionaries({name: st.sampled_from(("", "no such thing")) for name in DATAPATHS})
"""Datapath -> why a machine lacks it, empty where it does not."""


def lacking(*names: Datapath) -> dict[Datapath, str]:
    return {name: "no such thing" if name in names else "" for name in DATAPATHS}


@pytest.mark.parametrize(
    ("missing", "hashing", "taken", "reason"),
    [
        (lacking(), False, "kernel", "the best here"),
        (lacking(), True, "kernel", "the best here"),
        (lacking("kernel"), False, "nftables", "the best here; not kernel: no such thing"),
        (
            lacking("kernel"),
            True,
            "userspace",
            "the best here; not kernel: no such thing; "
            "not nftables: it does not hash flows, which the scheduler asks of the switches",
        ),
        (
            lacking("kernel", "nftables"),
            False,
            "userspace",
            "the best here; not kernel: no such thing; not nftables: no such thing",
        ),
    ],
)
def test_the_best_datapath_that_does_is_taken_and_the_reason_names_those_that_are_not(
    missing: Mapping[Datapath, str], hashing: bool, taken: Datapath, reason: str
) -> None:
    choice = choose(None, missing, hashing)
    assert (choice.datapath, choice.reason, choice.missing) == (taken, reason, "")


@given(HERE, st.booleans())
def test_nobody_is_given_what_is_missing_or_cannot_hash_while_something_does(
    missing: dict[Datapath, str], hashing: bool
) -> None:
    choice = choose(None, missing, hashing)
    do = [name for name in DATAPATHS if not missing[name] and (name in HASHING_DATAPATHS or not hashing)]
    assert choice.datapath == (do[0] if do else "userspace")
    assert choice.missing == missing[choice.datapath]
    assert not (hashing and choice.datapath == "nftables")


@given(HERE, st.sampled_from(HASHING_DATAPATHS), st.booleans())
def test_what_is_asked_for_by_name_is_taken_and_it_is_said_where_it_is_missing(
    missing: dict[Datapath, str], wanted: Datapath, hashing: bool
) -> None:
    choice = choose(wanted, missing, hashing)
    assert (choice.datapath, choice.reason, choice.missing) == (wanted, "asked for by name", missing[wanted])


@given(HERE)
def test_nftables_asked_for_where_switches_hash_is_refused_in_one_line(missing: dict[Datapath, str]) -> None:
    with pytest.raises(
        ValueError, match=r"^its switches hash flows, .* nftables .*, expected one of kernel, userspace$"
    ):
        choose("nftables", missing, switches_hash=True)


@pytest.mark.parametrize(
    ("missing", "switches_hash", "best"),
    [
        (["kernel"], False, "nftables"),
        (["kernel"], True, "userspace"),
        (["kernel", "nftables"], False, "userspace"),
    ],
)
def test_a_refusal_says_what_is_missing_and_which_would_do_best(
    missing: list[Datapath], switches_hash: bool, best: Datapath
) -> None:
    refusal = choose("kernel", lacking(*missing), switches_hash).refusal
    assert refusal == f"datapath kernel cannot be had here: no such thing; --datapath {best} would do"


@given(HERE, st.lists(st.sampled_from(DATAPATHS), unique=True))
def test_only_allowed_datapaths_count_or_all_where_none_is_named(
    missing: dict[Datapath, str], allowed: list[Datapath]
) -> None:
    found = only(missing, ",".join(allowed))
    assert {name for name in DATAPATHS if not found[name]} == {
        name for name in allowed or DATAPATHS if not missing[name]
    }


def test_an_unknown_name_in_the_environment_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ONLY, "userspace, nft")
    with pytest.raises(BadInputError) as error:
        capabilities.datapaths_here()
    assert str(error.value) == (
        "TESTBED_DATAPATHS: unknown datapath 'nft', expected some of kernel, nftables, userspace"
    )


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with all programs and modules but for the kernel module, whose place is returned."""
    monkeypatch.delenv(ONLY)
    monkeypatch.setattr(capabilities, "_KERNEL_MODULE", tmp_path / "openvswitch")
    monkeypatch.setattr(capabilities, "_where", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setattr(capabilities, "_succeeds", lambda command: False)
    monkeypatch.setattr(capabilities, "find_spec", lambda name: object())
    return tmp_path / "openvswitch"


def found(probed: Mapping[str, bool]) -> dict[Datapath, str]:
    return capabilities._missing_datapaths(probed)


WORKS = {"veth": True, "nftables": True}


def test_a_machine_with_the_kernel_module_has_every_datapath(machine: Path) -> None:
    machine.mkdir()
    assert found(WORKS) == lacking()
    assert choose(None, found(WORKS), switches_hash=False).datapath == "kernel"


def test_a_module_that_can_be_loaded_is_not_there_and_how_is_said(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(WORKS)["kernel"] == "the kernel module openvswitch is not in this kernel"
    monkeypatch.setattr(capabilities, "_succeeds", lambda command: command[0] == "modprobe")
    assert found(WORKS)["kernel"] == "the kernel module openvswitch is not loaded (modprobe openvswitch)"


def test_a_kernel_that_refuses_the_trial_table_has_no_nftables(machine: Path) -> None:
    refused = {"veth": True, "nftables": False}
    assert found(refused)["nftables"] == "this kernel takes no table of nftables that forwards packets"


@pytest.mark.parametrize("probed", [{}, {"veth": False, "nftables": False}])
def test_where_nothing_can_be_tried_what_is_installed_counts(machine: Path, probed: dict[str, bool]) -> None:
    assert found(probed)["nftables"] == ""


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ("find_spec", "this Python has no module nftables ('make setup' installs it)"),
        ("_where", "there is no program nft ('make setup' installs it)"),
    ],
)
def test_what_is_not_installed_is_named_with_the_way_to_get_it(
    machine: Path, lacks: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, lacks, lambda name: None)
    assert found(WORKS)["nftables"] == why


def test_every_datapath_has_a_row_and_one_of_them_is_the_default(machine: Path) -> None:
    rows = {row.name: row for row in capabilities._datapaths(WORKS)}
    assert [row.present for row in rows.values()] == [False, True, True]
    assert [row.consequence for row in rows.values()] == ["", "the default", ""]
    assert not any(row.blocking for row in rows.values())
    (*_, last) = capabilities._datapaths({"veth": True, "nftables": False})
    assert last.consequence == "the default, and one thread for all switches: a small packet budget"


def test_without_open_vswitch_there_is_no_datapath(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_where", lambda name: None if name == "ovs-vswitchd" else name)
    assert [row.present for row in capabilities._datapaths(WORKS)] == [False, False, False]


@pytest.mark.parametrize("wanted", [None, "nftables"])
def test_packets_are_spread_by_nftables_alone(wanted: Datapath | None) -> None:
    assert choose(wanted, lacking(), False, "spray").datapath == "nftables"


def test_a_machine_without_nftables_cannot_spread_packets_and_nothing_would_do_instead() -> None:
    choice = choose(None, lacking("nftables"), False, "flowlet")
    said = "datapath nftables, the only one with flowlet, cannot be had here: no such thing"
    assert (choice.missing, choice.refusal) == ("no such thing", said)


def test_another_datapath_or_a_hash_of_the_switches_is_refused_where_packets_are_spread() -> None:
    with pytest.raises(ValueError, match="the datapath kernel has no spray, expected nftables"):
        choose("kernel", lacking(), False, "spray")
    with pytest.raises(ValueError, match="its switches hash flows, which is no spray, expected load_balancing: hash"):
        choose(None, lacking(), True, "spray")
