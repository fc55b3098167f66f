"""Which servers on loan go back, and what that does to jobs (Lyra, EuroSys 2023, section 4).

Elastic jobs that keep their minimum elsewhere are scaled in, which preempts nobody; the other jobs of a server are
preempted. Servers go back in order of what they cost: the sum over the jobs to preempt of 1 / (servers of the job).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Footprint:
    """The GPUs of a job by host, in the job's order, and how many it needs at least."""

    gpus: Mapping[str, int]
    least: int

    def keeps_enough_without(self, host: str) -> bool:
        """Whether the job can give up its GPUs on ``host`` and go on."""
        return sum(self.gpus.values()) - self.gpus.get(host, 0) >= self.least

    def without(self, host: str) -> Footprint:
        """The job scaled in."""
        return Footprint({each: gpus for each, gpus in self.gpus.items() if each != host}, self.least)


@dataclass(frozen=True, slots=True)
class Return:
    """A server that goes back: the jobs that give up their GPUs on it, and those that are preempted."""

    host: str
    scaled_in: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()


def returns(jobs: Mapping[str, Footprint], hosts: Sequence[str], count: int) -> list[Return]:
    """Return ``count`` of ``hosts``, the least costly first; costs are computed again after each.

    Of equal ones that on which the fewest GPUs are given up, then the first of ``hosts``.
    """
    left, known = list(hosts), dict(jobs)
    chosen: list[Return] = []
    while left and len(chosen) < count:
        costs = _costs(known, left)
        host = min(left, key=costs.__getitem__)
        there = [name for name, job in known.items() if host in job.gpus]
        stay = tuple(name for name in there if known[name].keeps_enough_without(host))
        go = tuple(name for name in there if name not in stay)
        chosen.append(Return(host, stay, go))
        left.remove(host)
        known.update({name: known[name].without(host) for name in stay})
        for name in go:
            del known[name]
    return chosen


def server_values(hosts_of_jobs: Mapping[str, Iterable[str]], hosts: Iterable[str]) -> dict[str, Fraction]:
    """Return what giving back each of ``hosts`` costs if no job is elastic: the sum over its jobs of 1 / its hosts."""
    return {host: cost for host, (cost, _) in _costs(_inelastic(hosts_of_jobs), list(hosts)).items()}


def order_of_return(hosts_of_jobs: Mapping[str, Iterable[str]], hosts: Sequence[str], count: int) -> list[str]:
    """Return ``count`` of ``hosts`` in the order of :func:`returns` if no job is elastic."""
    return [each.host for each in returns(_inelastic(hosts_of_jobs), hosts, count)]


def _costs(jobs: Mapping[str, Footprint], hosts: Sequence[str]) -> dict[str, tuple[Fraction, int]]:
    """Host -> cost of the jobs that it preempts, and GPUs that others give up."""
    costs = dict.fromkeys(hosts, (Fraction(0), 0))
    for job in jobs.values():
        for host, gpus in job.gpus.items():
            if host in costs:
                cost, given = costs[host]
                stays = job.keeps_enough_without(host)
                costs[host] = (cost, given + gpus) if stays else (cost + Fraction(1, len(job.gpus)), given)
    return costs


def _inelastic(hosts_of_jobs: Mapping[str, Iterable[str]]) -> dict[str, Footprint]:
    counted = {name: dict.fromkeys(used, 1) for name, used in hosts_of_jobs.items()}
    return {name: Footprint(gpus, len(gpus)) for name, gpus in counted.items()}
