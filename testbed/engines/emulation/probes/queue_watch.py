"""Whether queues stay as they were set while a run goes on: shapers, classes and filters, as the kernel has them.

What was installed when the run began was compared with what was asked for; from then on the kernel's own words
(netlink attributes without the counters in them) are compared with those first ones. Reading back a
link costs a third of a millisecond, so a few links take their turn each second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.engines.emulation.probes.netlink import ACKNOWLEDGEMENTS, CounterSocket, Setting
from testbed.fidelity.observations import Change
from topologies.shaping import LEAF_HANDLE

LINKS_PER_LOOK: Final = 40
"""Links read back each second: all of a small fabric, those of ``clos96`` within seven seconds."""

LINKS_AT_ONCE: Final = 5

_ROOT_CLASS: Final = 0x10001


@dataclass(frozen=True, slots=True)
class WatchedLink:
    """Where the queues of a link are: a socket in the namespace, the interface, and who carries its filters."""

    socket: CounterSocket
    interface: int
    filter_parents: tuple[int, ...]


Held = Mapping[tuple[str, int, int], bytes]
"""(kind, parent, handle) -> the attributes of every queue, class and filter of an interface."""


class QueueWatch:
    """Reads links back in turns; ``changes`` collects what was found otherwise and for how long."""

    def __init__(self, links: Mapping[str, WatchedLink]) -> None:
        self._links = dict(links)
        self._first = {name: self._read(link) for name, link in self._links.items()}
        self._turn = list(self._links)
        self._last_right: dict[str, float] = {}
        self._open: dict[tuple[str, str], Change] = {}
        self._closed: list[Change] = []

    def looking(self, now: float, urgent: Sequence[str] = ()) -> Iterator[None]:
        """Read back the links whose turn it is, and ``urgent`` ones, at ``now`` on the run's clock, a few at a time."""
        turn = self._turn[:LINKS_PER_LOOK]
        self._turn = self._turn[LINKS_PER_LOOK:] + turn
        for number, name in enumerate(dict.fromkeys([*urgent, *turn]), start=1):
            self.compare(name, self._read(self._links[name]), now)
            if number % LINKS_AT_ONCE == 0:
                yield

    def compare(self, name: str, held: Held, now: float) -> None:
        """Take note of what link ``name`` holds at ``now``."""
        wrong = differences(self._first[name], held)
        since = self._last_right.get(name, 0.0)
        for what in wrong:
            known = self._open.get((name, what))
            self._open[name, what] = Change("setting", known.from_s if known else since, now, what, name)
        for key in [key for key in self._open if key[0] == name and key[1] not in wrong]:
            self._close(key, now)
        if not wrong:
            self._last_right[name] = now

    def _close(self, key: tuple[str, str], now: float) -> None:
        was = self._open.pop(key)
        self._closed.append(Change(was.kind, was.from_s, now, was.what, was.link, lasting=False))

    def note_reset(self, name: str, since: float, now: float) -> None:
        """The counters of a queue went back: it was recreated between ``since`` and ``now``."""
        self._closed.append(Change("setting", since, now, "a queue was replaced", name, lasting=False))

    @property
    def changes(self) -> list[Change]:
        """What was found so far."""
        return [*self._closed, *self._open.values()]

    @staticmethod
    def _read(link: WatchedLink) -> Held:
        settings = link.socket.settings(link.interface, link.filter_parents)
        return {(s.kind, s.parent, s.handle): s.attributes for s in settings}


def differences(first: Held, now: Held) -> list[str]:
    """What of ``first`` is gone or different ``now``, and what is new, in words; classes before what hangs on them."""
    if first and not any(kind == "class" for kind, _, _ in now):
        return ["the shaper is gone"]
    found = []
    for key in sorted(first.keys() | now.keys()):
        kind, parent, handle = key
        if key not in now:
            found.append(f"{_named(kind, handle, first[key])} is gone")
        elif key not in first:
            found.append(f"{_named(kind, handle, now[key])} was added")
        elif first[key] != now[key]:
            found.append(_changed(kind, parent, handle, first[key], now[key]))
    return found


def _named(kind: str, handle: int, attributes: bytes) -> str:
    if kind == "filter":
        target = Setting(kind, 0, handle, attributes).target
        if target is None:
            return "the table of filters"
        if target == ACKNOWLEDGEMENTS:
            return "the filter that leads acknowledgements to their class"
        return f"the filter of DSCP that leads to {_level_of(target)}"
    return f"class {_handle(handle)}"


def _changed(kind: str, parent: int, handle: int, before: bytes, after: bytes) -> str:
    was, now = (Setting(kind, parent, handle, attributes).parameters for attributes in (before, after))
    if kind == "class" and handle == _ROOT_CLASS and was.get("rate") != now.get("rate"):
        return f"the shaper was set from {was.get('rate')} to {now.get('rate')} bit/s"
    changed = [f"{name} {was[name]}, now {now[name]}" for name in was.keys() & now.keys() if was[name] != now[name]]
    return f"{_named(kind, handle, before)} is not as it was set ({', '.join(sorted(changed)) or 'unknown words'})"


def _level_of(number: int) -> str:
    """The level of a class, in either discipline."""
    major, minor = number >> 16, number & 0xFFFF
    return f"level {minor - LEAF_HANDLE if major == 1 else minor - 1}"


def _handle(number: int) -> str:
    return f"{number >> 16:x}:{number & 0xFFFF:x}"
