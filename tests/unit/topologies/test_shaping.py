"""Shaping as tc commands, and how what the kernel shows is compared with it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.shaping import Discipline, Shaping, payload_share, rate_commands, tc_commands, tos_of_level

readback = pytest.importorskip("topologies.mininet_adapter.readback", exc_type=ImportError)

HTB = Shaping("tor0-eth1", 12.5e6, 9000, 32 << 20)
DISCIPLINES: tuple[Discipline, ...] = ("htb", "prio")


def shown(shaping: Shaping) -> str:
    """What ``tc`` of iproute2 6.1 shows for it, in the parts that matter."""
    rate = f"{shaping.wire_rate // 1000}Kbit"
    lines = ["qdisc htb 1: root refcnt 2 r2q 10 default 0x17 direct_packets_stat 0 direct_qlen 1000"]
    lines.append(f"class htb 1:1 root rate {rate} ceil {rate} burst 1600b cburst 1600b ")
    lines.append(f"qdisc bfifo 20: parent 1:2 limit {shaping.buffer >> 20}Mb")
    lines.append(f"class htb 1:2 root leaf 20: prio 0 rate {rate} ceil {rate} burst 1600b cburst 1600b ")
    lines.append("filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:2 ")
    lines.append("  match 00000028/0000ffff at 0")
    lines.append("  match 00100000/003f0000 at 32")
    for level in range(shaping.levels):
        lines.append(f"qdisc bfifo {0x10 + level:x}: parent 1:1{level} limit {shaping.buffer >> 20}Mb")
        leaf = f"{0x10 + level:x}:"
        lines.append(f"class htb 1:1{level} parent 1:1 leaf {leaf} prio {level} rate 8Kbit ceil {rate} burst 1580b ")
        if level < shaping.levels - 1:
            lines.append(f"filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::80{level} order flowid 1:1{level} ")
            lines.append(f"  match {tos_of_level(level) << 16:08x}/00fc0000 at 0")
    return "\n".join(lines)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("levels", [1, 2, 8])
def test_every_level_has_a_queue_and_every_level_but_the_last_a_filter(discipline: Discipline, levels: int) -> None:
    commands = tc_commands(Shaping("h0n0p0", 1e7, 9000, 1 << 20, levels, discipline))
    leaves = [re.search(r"parent (?:1:1|2:)\d handle (\w+): bfifo limit 1048576$", command) for command in commands]
    assert [match.group(1) for match in leaves if match] == [f"{0x10 + level:x}" for level in range(levels)]
    marks = [match.group(1) for command in commands if (match := re.search(r"dsfield (\w+) 0xfc flowid", command))]
    assert marks == [f"{tos_of_level(level):#x}" for level in range(levels - 1)]


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_acknowledgements_do_not_wait_for_the_shaper_and_nothing_else_takes_their_way(discipline: Discipline) -> None:
    commands = tc_commands(Shaping("h0n0p0", 1e7, 9000, 1 << 20, discipline=discipline))
    led = [command for command in commands if command.endswith("flowid 1:2")]
    beside = [command for command in commands if "parent 1: classid 1:2 " in command]
    assert len(led) == len(beside) == 1
    assert " u32 match u16 40 0xffff at 2 match u8 0x10 0x3f at 33 " in led[0]  # of every mark
    filters = [command for command in commands if command.startswith("filter")]
    assert filters[0] == led[0]  # before that of data of the highest level


def test_a_lower_level_number_is_a_higher_priority_and_all_may_borrow_the_whole_rate() -> None:
    classes = [command for command in tc_commands(HTB) if "parent 1:1 classid" in command]
    assert [int(re.findall(r" prio (\d)", command)[0]) for command in classes] == list(range(8))
    assert all(f"rate 8bit ceil {HTB.wire_rate}bit" in command for command in classes)


def test_what_no_filter_names_goes_to_the_lowest_level() -> None:
    assert tc_commands(HTB)[0].endswith("htb default 17")


@given(st.floats(1e5, 1e9), st.integers(1500, 65_000))
def test_the_shaper_leaves_the_payload_its_rate(rate: float, mtu: int) -> None:
    shaping = Shaping("eth0", rate, mtu, 1 << 20)
    assert shaping.wire_rate * payload_share(mtu) == pytest.approx(rate, rel=1e-4)
    assert shaping.burst >= 1600


def test_what_was_asked_for_has_no_mismatch() -> None:
    assert list(readback.compare(HTB, shown(HTB))) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("class htb 1:1 root", "class hfsc 1:1 root", "the shaper is gone"),
        ("root rate 12575Kbit", "root rate 6500Kbit", f"the shaper is set to 6500000 bit/s, not {HTB.wire_rate}"),
        ("bfifo 13: parent 1:13 limit 32Mb", "bfifo 13: parent 1:13 limit 16Mb", "the queue of level 3 is not as set"),
        ("qdisc bfifo 10:", "qdisc pfifo 10:", "the queue of level 0 is not as set"),
        ("bfifo 20:", "pfifo 20:", "the queue of acknowledgements is not as set"),
        ("class htb 1:2 root leaf", "class htb 1:3 root leaf", "the class of acknowledgements is not as set"),
        ("match 00000028/", "match 00000034/", "no filter leads acknowledgements to their class"),
        ("match 00c00000/", "match 00c40000/", "no filter leads DSCP 48 to level 1"),
        ("leaf 12: prio 2", "leaf 12: prio 0", "the class of level 2 does not have its priority"),
        (
            "prio 5 rate 8Kbit ceil 12575Kbit",
            "prio 5 rate 8Kbit ceil 6500Kbit",
            "the class of level 5 may not borrow the whole rate",
        ),
    ],
)
def test_each_thing_that_is_not_as_set_is_named(old: str, new: str, line: str) -> None:
    text = shown(HTB)
    assert old in text
    assert list(readback.compare(HTB, text.replace(old, new))) == [line]


def test_a_wiped_interface_is_one_line() -> None:
    assert list(readback.compare(HTB, "qdisc noqueue 0: root refcnt 2 \n")) == ["the shaper is gone"]


def test_queues_of_all_interfaces_are_told_apart_by_their_names() -> None:
    text = (
        "qdisc htb 1: dev a root refcnt 2\n"
        "qdisc bfifo 10: dev b parent 1:10 limit 32Mb\n"
        "qdisc bfifo 11: dev a parent 1:11\n"
    )
    assert readback.by_interface(text) == {
        "a": "qdisc htb 1: root refcnt 2\nqdisc bfifo 11: parent 1:11\n",
        "b": "qdisc bfifo 10: parent 1:10 limit 32Mb\n",
    }


CLASSES, FILTERS = "class htb 1:1 root\nclass htb 1:10 parent 1:1\n", "filter parent 1: u32\n  match 00e00000\n"


def test_answers_about_several_interfaces_begin_with_a_class_after_a_filter() -> None:
    assert readback.blocks(2 * (CLASSES + FILTERS)) == 2 * [CLASSES + FILTERS]


@pytest.mark.parametrize("missing", [CLASSES, FILTERS, CLASSES + FILTERS])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interface_that_lost_something_makes_the_answers_too_few(missing: str, place: int) -> None:
    answers = [CLASSES + FILTERS] * 3
    answers[place] = answers[place].replace(missing, "")
    assert len(readback.blocks("".join(answers))) < 3


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_another_rate_changes_every_class_to_what_it_would_have_been_made_as(discipline: Discipline) -> None:
    faster = Shaping("tor0-eth1", 25e6, 9000, 32 << 20, discipline=discipline)
    made = {line for line in tc_commands(faster) if line.startswith("class add")}
    changed = rate_commands(faster)
    assert {line.replace("class change", "class add") for line in changed} == made
    assert len(changed) == (10 if discipline == "htb" else 2)
