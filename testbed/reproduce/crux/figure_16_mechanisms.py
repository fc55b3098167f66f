"""The mechanisms under test on a small case: the schedulers' own code, with one path per job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.schedulers.crux.compression import compress, contending, contention_edges, first_levels_own
from controller.schedulers.crux.intensity import Profile, links_used, profile
from controller.schedulers.crux.path_selection import least_loaded
from controller.schedulers.crux.priority import CLAMP, correction_factors, priority_order
from controller.schedulers.sincronia import bssi, sincronia_order
from controller.schedulers.taccl_star import taccl_star_order
from controller.schedulers.varys import even_levels, sebf_order
from testbed.reproduce.crux.figure_16_cases import LEVELS, Case
from testbed.reproduce.crux.figure_16_optimum import PathChoices

Paths = tuple[int, ...]
"""Aggregation switch of each job."""


def crux_paths(case: Case, choices: Sequence[PathChoices]) -> Paths:
    """Crux section 4.1: the most intensive job first, the least loaded path, load in bytes per second."""
    alone = [profile(job, case.fabric) for job in case.jobs]
    order = sorted(range(len(alone)), key=lambda index: (-alone[index].intensity, alone[index].job))
    load: dict[str, float] = {}
    chosen = [0] * len(alone)
    for index in order:
        candidates = [tuple(loads) for loads in choices[index].candidates]
        path = least_loaded(candidates, load)
        chosen[index] = candidates.index(path)
        for link, seconds in choices[index].candidates[chosen[index]].items():
            load[link] = load.get(link, 0.0) + seconds / alone[index].iteration_s
    return tuple(chosen)


def taccl_star_paths(choices: Sequence[PathChoices]) -> Paths:
    """TACCL*: in order of arrival, the path whose worst link needs the fewest seconds for all bytes on it."""
    load: dict[str, float] = {}
    chosen = []
    for choice in choices:
        worst = [max(load.get(link, 0.0) + own for link, own in loads.items()) for loads in choice.candidates]
        chosen.append(worst.index(min(worst)))
        for link, own in choice.candidates[chosen[-1]].items():
            load[link] = load.get(link, 0.0) + own
    return tuple(chosen)


def orders(case: Case, choices: Sequence[PathChoices], paths: Paths) -> dict[str, tuple[int, ...]]:
    """Scheduler -> jobs (indices) in its order of priority on ``paths``, highest first."""
    used = case.paths(paths)
    loads = {job.name: choice.candidates[path] for job, choice, path in zip(case.jobs, choices, paths, strict=True)}
    named = {
        "crux": _named_crux_order(case, paths, CLAMP),
        "taccl-star": taccl_star_order(case.fabric, case.jobs, used),
        "taccl-star, cost": taccl_star_order(case.fabric, case.jobs, used, "cost"),
        "sincronia": sincronia_order(case.fabric, case.jobs),
        "sincronia, all links": bssi(loads),
        "varys": sebf_order(case.fabric, case.jobs),
    }
    number = {job.name: index for index, job in enumerate(case.jobs)}
    return {scheduler: tuple(number[name] for name in order) for scheduler, order in named.items()}


def crux_order(case: Case, paths: Paths, clamp: float) -> tuple[int, ...]:
    """Crux section 4.2: jobs by k * intensity, highest first, k within 1 / ``clamp`` and ``clamp``."""
    names = [job.name for job in case.jobs]
    return tuple(names.index(name) for name in _named_crux_order(case, paths, clamp))


def compressions(case: Case, paths: Paths, order: Sequence[int], seed: int) -> dict[str, tuple[int, ...]]:
    """Scheduler -> level of each job on :data:`LEVELS` levels, computed from the jobs in ``order`` (highest first)."""
    ranked = tuple(case.jobs[index].name for index in order)
    used = case.paths(paths)
    links = {job.name: links_used(job, case.fabric, used) for job in case.jobs}
    edges = contention_edges(ranked, links, intensities(case, paths))
    among = contending(ranked, edges)
    named = {
        "crux": compress(among, edges, LEVELS, seed),
        "sincronia": first_levels_own(ranked, LEVELS),
        "varys": even_levels(ranked, LEVELS),
    }
    return {scheduler: tuple(levels.get(job.name, 0) for job in case.jobs) for scheduler, levels in named.items()}


def intensities(case: Case, paths: Paths) -> dict[str, float]:
    """Job -> GPU intensity on ``paths``."""
    return {found.job: found.intensity for found in _profiles(case, paths)}


def _profiles(case: Case, paths: Paths) -> tuple[Profile, ...]:
    used = case.paths(paths)
    return tuple(profile(job, case.fabric, used) for job in case.jobs)


def _named_crux_order(case: Case, paths: Paths, clamp: float) -> tuple[str, ...]:
    profiles = {found.job: found for found in _profiles(case, paths)}
    factors: Mapping[str, float] = correction_factors(tuple(profiles.values()), clamp)
    return priority_order({job: factors[job] * found.intensity for job, found in profiles.items()}, profiles)
