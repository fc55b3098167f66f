"""How many hosts the tokens of a mixture are sent to.

A token is sent once to each host that has experts for it, and handed on inside (DeepSeek-V3, section 3.2.2; DeepEP).
"""

from __future__ import annotations

from math import comb

from workloads.training.transformer import Experts


def copies_to_hosts(experts: Experts, hosts: int) -> float:
    """Return to how many other hosts a token is sent on average, its experts drawn evenly from ``hosts`` that share
    them.

    ``most_nodes`` limits them: a token then chooses that many hosts, and experts on each.
    """
    if hosts <= 1:
        return 0.0
    reached = (
        float(min(hosts, experts.most_nodes, experts.per_token)) if experts.most_nodes else _distinct(experts, hosts)
    )
    return reached * (hosts - 1) / hosts


def _distinct(experts: Experts, hosts: int) -> float:
    """Mean number of hosts that have one of the experts of a token."""
    each = experts.count // hosts
    if each == 0:
        return float(experts.per_token)
    missed = comb(experts.count - each, experts.per_token) / comb(experts.count, experts.per_token)
    return hosts * (1 - missed)
