"""Every iteration of running jobs stepped through, until a time or until the first of them has done its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.engines.replay.rates.link_users import LinkUsers
from testbed.engines.replay.running_job import ReplayedJob, contention_of
from testbed.fluid.steady_state import Settled, settle
from workloads.periodic_job import SLACK_S


def step_exactly(running: Mapping[str, ReplayedJob], users: LinkUsers, most_s: float) -> tuple[dict[str, float], float]:
    """Step at most ``most_s`` seconds; return iterations per second over them, and the seconds: fewer if a job is done.

    ``users``: which links and GPUs each job uses. The ``state`` of the jobs follows. A group that has no more time than
    rounding stays where it is, and has no rates.
    """
    groups = [[each for name, each in running.items() if name in joined] for joined in users.joined(running)]
    stepped: list[Settled | None] = []
    reached_s = most_s
    for members in groups:
        found = _stepped(members, reached_s)
        stepped.append(found)
        reached_s = reached_s if found is None else min(reached_s, found.horizon_s)
    rates: dict[str, float] = {}
    for members, found in zip(groups, stepped, strict=True):
        # A group that went further than a later one could goes that far again.
        step = found if found is None or found.horizon_s <= reached_s + SLACK_S else _stepped(members, reached_s)
        if step is None:
            continue
        for each, rate, state in zip(members, step.rates, step.states, strict=True):
            rates[each.name], each.state = rate, state
    return rates, reached_s


def _stepped(members: Sequence[ReplayedJob], most_s: float) -> Settled | None:
    if most_s <= SLACK_S:
        return None
    packs, states = [each.pack for each in members], [each.state for each in members]
    return settle(contention_of(members), most_s, states, packs=packs, quotas=[each.left for each in members])
