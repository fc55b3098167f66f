"""Which servers on loan go back: those whose loss preempts least (Lyra section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from workloads.managers.cluster_state import ClusterState


def server_values(hosts_of_jobs: Mapping[str, Iterable[str]], hosts: Iterable[str]) -> dict[str, Fraction]:
    """Return the value of each of ``hosts``: the sum, over jobs there, of 1 / (hosts of the job)."""
    values = dict.fromkeys(hosts, Fraction(0))
    for used in hosts_of_jobs.values():
        of_job = list(dict.fromkeys(used))
        for host in of_job:
            if host in values:
                values[host] += Fraction(1, len(of_job))
    return values


def order_of_return(hosts_of_jobs: Mapping[str, Iterable[str]], hosts: Sequence[str], count: int) -> list[str]:
    """Return ``count`` of ``hosts``, the least valuable first; whoever runs there is gone before the next is chosen.

    The first of ``hosts`` goes on a tie.
    """
    left, jobs = list(hosts), {name: tuple(used) for name, used in hosts_of_jobs.items()}
    chosen: list[str] = []
    while left and len(chosen) < count:
        values = server_values(jobs, left)
        host = min(left, key=lambda each: values[each])
        chosen.append(host)
        left.remove(host)
        jobs = {name: used for name, used in jobs.items() if host not in used}
    return chosen


def hosts_to_return(state: ClusterState, hosts: Sequence[str], count: int) -> list[str]:
    """Return ``count`` of ``hosts`` as :func:`order_of_return` does for the jobs that run."""
    of_gpu = state.fabric.host_of_gpu
    running = {name: [of_gpu[gpu] for gpu in each.gpus] for name, each in state.running.items()}
    return order_of_return(running, hosts, max(0, count))
