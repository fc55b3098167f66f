"""Whether cables can fail as a scenario says: they exist, and no host is ever cut off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from math import inf

from testbed.scenario.document import Problem
from testbed.scenario.spec import LinkFailureSpec
from topologies.fabric import Fabric


def failure_problems(failures: Mapping[int, LinkFailureSpec], fabric: Fabric) -> Iterator[Problem]:
    """Every failure that is wrong by itself; of right ones, the first that cuts ToRs off from each other."""
    right: dict[int, LinkFailureSpec] = {}
    for index, failure in failures.items():
        problem = _wrong(failure, fabric)
        if problem is None:
            right[index] = failure
        else:
            yield Problem(("link_failures", index, problem[0]), problem[1])
    for index, failure in sorted(right.items(), key=lambda item: item[1].at):
        down = [other.link for other in right.values() if other.at <= failure.at < _end(other)]
        if not _connected(fabric.without(down)):
            message = f"without {', '.join(sorted(down))} some ToRs cannot reach each other, expected a path to be left"
            yield Problem(("link_failures", index), message)
            return


def _wrong(failure: LinkFailureSpec, fabric: Fabric) -> tuple[str, str] | None:
    """The key that is wrong and why."""
    link = fabric.links.get(failure.link)
    between = [name for name, each in fabric.links.items() if each.kind in ("tor-agg", "agg-core")]
    if link is None or failure.link not in between:
        near = get_close_matches(failure.link, between, 1) or between[:1]
        return "link", f"no cable '{failure.link}' between switches, expected one like {near[0] if near else 'none'}"
    if failure.until is not None and failure.until <= failure.at:
        return "until", f"ends at {failure.until:g} s, expected a time after {failure.at:g} s"
    return None


def _end(failure: LinkFailureSpec) -> float:
    return inf if failure.until is None else failure.until


def _connected(fabric: Fabric) -> bool:
    """Whether every ToR reaches every other."""
    tors = {switch.name for switch in fabric.switches.values() if switch.tier == "tor"}
    reached, waiting = set[str](), sorted(tors)[:1]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += [link.target for link in fabric.links_from.get(node, ()) if link.target in fabric.switches]
    return tors <= reached
