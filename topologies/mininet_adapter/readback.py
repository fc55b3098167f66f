"""What the kernel really has: queues read back and compared with the requested ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from topologies.mininet_adapter.detours import Detour
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.system import network_namespace_of, run_command
from topologies.shaping import (
    ACKNOWLEDGEMENT_CLASS,
    ACKNOWLEDGEMENT_LEAF,
    LEAF_HANDLE,
    TCP_IP_HEADER,
    Shaping,
    tos_of_level,
)

RATE_TOLERANCE = 0.001
"""``tc`` prints rates with four digits."""

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20}
_RATE = re.compile(r"class htb 1:1 root.* rate ([0-9.]+)([KMG]?)bit")
_CLASS = re.compile(r"class htb (1:\S+) parent 1:1 .*prio (\d+)(?:.* ceil ([0-9.]+)([KMG]?)bit)?")
_ACKNOWLEDGEMENTS = re.compile(rf"class htb 1:{ACKNOWLEDGEMENT_CLASS} root.* rate ([0-9.]+)([KMG]?)bit")
_LED_THERE = re.compile(
    rf"flowid 1:{ACKNOWLEDGEMENT_CLASS}\b.*\n"
    rf"  match {TCP_IP_HEADER:08x}/0000ffff at 0\n"
    r"  match 00100000/003f0000 at 32"
)
_LEAF = re.compile(r"qdisc bfifo (\S+): parent \S+ limit (\d+)([KM]?)b")
_REDIRECT = re.compile(r"mirred \(Egress Redirect to device (\S+)\)")
_MATCH = re.compile(r"match ([0-9a-f]{8})/00fc0000 at 0")
_BOUNDARY = ["qdisc show dev lo"] * 2
"""Two unshaped interfaces in a row end an interface's answers: ``tc -batch`` does not say which it answers for."""


def queue_mismatches(network: EmulatedNetwork) -> list[str]:
    """One line for every shaper, class, filter, queue or detour that is not as set; empty if all are."""
    found: list[str] = []
    for host, pid in network.namespaces():
        shapings = [network.shaping_of(link) for link in network.links_of_namespace(host)]
        if pid is None:
            found += _mismatches(shapings)
        else:
            with network_namespace_of(pid):
                found += _mismatches(shapings)
                found += _detour_mismatches(network.detours_of(host))
    return found


def _detour_mismatches(detours: list[Detour]) -> Iterator[str]:
    """Traffic of ports that does not pass the queues of its PCIe links."""
    wanted = [(detour.port, *way) for detour in detours for way in (("egress", detour.out), ("ingress", detour.into))]
    answers = _answers([[f"filter show dev {port} {direction}"] for port, direction, _ in wanted])
    for (port, direction, target), answer in zip(wanted, answers, strict=True):
        if _REDIRECT.findall(answer) != [target]:
            yield f"interface {port}: no filter leads its {direction} over {target}"


def _mismatches(shapings: list[Shaping]) -> Iterator[str]:
    queues = by_interface(run_command(["tc", "qdisc", "show"]))
    for shaping, answer in zip(shapings, _classes_and_filters(shapings), strict=True):
        for problem in compare(shaping, queues.get(shaping.interface, "") + answer):
            yield f"interface {shaping.interface}: {problem}"


def by_interface(text: str) -> dict[str, str]:
    """Return interface -> the lines of ``tc qdisc show`` about it, without its name.

    The kernel lists the queues of all interfaces even to a question about one, so all are asked for at once.
    """
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        head, _, rest = line.partition(" dev ")
        name, _, tail = rest.partition(" ")
        found.setdefault(name, []).append(f"{head} {tail}\n")
    return {name: "".join(lines) for name, lines in found.items()}


def _classes_and_filters(shapings: list[Shaping]) -> list[str]:
    """What ``tc`` says of the classes and filters of each interface; one by one where answers cannot be told apart."""
    if not shapings:
        return []
    questions = [[question.format(shaping.interface) for question in _asked(shaping)] for shaping in shapings]
    lines = [line for asked in questions for line in asked]
    answers = blocks(run_command(["tc", "-batch", "-"], text_input="\n".join(lines) + "\n"))
    if len(answers) == len(shapings):
        return answers
    return ["".join(run_command(["tc", *line.split()]) for line in asked) for asked in questions]


def _asked(shaping: Shaping) -> tuple[str, ...]:
    at_root = "class show dev {}", "filter show dev {}"
    return at_root if shaping.discipline == "htb" else (*at_root, "filter show dev {} parent 2:")


def blocks(text: str) -> list[str]:
    """Return the parts of ``text`` that begin with a class after a filter: ``tc -batch`` does not say whom it means.

    An interface without a class or a filter makes them fewer than there are interfaces.
    """
    found: list[list[str]] = []
    filters = True
    for line in text.splitlines(keepends=True):
        if line.startswith("class") and filters:
            found.append([])
            filters = False
        filters = filters or line.startswith("filter")
        if found:
            found[-1].append(line)
    return ["".join(lines) for lines in found] if filters else []


def _answers(questions: list[list[str]]) -> list[str]:
    """What ``tc`` answers to each list of questions, all asked at once."""
    if not questions:
        return []
    lines = [line for asked in questions for line in [*asked, *_BOUNDARY]]
    text = run_command(["tc", "-batch", "-"], text_input="\n".join(lines) + "\n")
    answers = re.split(r"(?:qdisc noqueue [^\n]*\n){2}", text)
    return (answers + [""] * len(questions))[: len(questions)]


def compare(shaping: Shaping, answer: str) -> Iterable[str]:
    """What differs between ``shaping`` and what ``tc`` shows of its interface's qdiscs, classes and filters."""
    rate = _rate_of(_RATE, answer)
    if rate is None:
        yield "the shaper is gone"
        return
    if _differ(rate, shaping.wire_rate):
        yield f"the shaper is set to {rate:.0f} bit/s, not {shaping.wire_rate}"
    if _differ(_rate_of(_ACKNOWLEDGEMENTS, answer) or 0.0, shaping.wire_rate):
        yield "the class of acknowledgements is not as set"
    if not _LED_THERE.search(answer):
        yield "no filter leads acknowledgements to their class"
    limits = {handle: int(limit) * _SIZES[unit] for handle, limit, unit in _LEAF.findall(answer)}
    found = _CLASS.findall(answer)
    classes = {handle: int(prio) for handle, prio, _, _ in found}
    ceilings = {handle: float(rate or 0) * _UNITS[unit] for handle, _, rate, unit in found}
    marks = {int(value, 16) >> 16 for value in _MATCH.findall(answer)}
    if limits.get(f"{ACKNOWLEDGEMENT_LEAF:x}") != shaping.buffer:
        yield "the queue of acknowledgements is not as set"
    for level in range(shaping.levels):
        if limits.get(f"{LEAF_HANDLE + level:x}") != shaping.buffer:
            yield f"the queue of level {level} is not as set"
        if level < shaping.levels - 1 and tos_of_level(level) not in marks:
            yield f"no filter leads DSCP {tos_of_level(level) >> 2} to level {level}"
        if shaping.discipline == "htb" and classes.get(f"1:1{level}") != level:
            yield f"the class of level {level} does not have its priority"
        elif shaping.discipline == "htb" and _differ(ceilings[f"1:1{level}"], shaping.wire_rate):
            yield f"the class of level {level} may not borrow the whole rate"


def _differ(rate: float, wanted: float) -> bool:
    return abs(rate - wanted) > RATE_TOLERANCE * wanted


def _rate_of(pattern: re.Pattern[str], answer: str) -> float | None:
    """Bit/s of the class that ``pattern`` finds; None if there is none."""
    found = pattern.search(answer)
    return None if found is None else float(found.group(1)) * _UNITS[found.group(2)]
