"""Schedulers on the network of an emulation and on those of RDMA clusters: would it be so on RoCE?

Every packet is simulated. Rows at line rate show how far the bandwidth scale of the other rows is from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.api import prepare
from testbed.errors import EXIT_FAILED, EXIT_OK, BadInputError, RunFailedError
from testbed.machine.process_pool import started
from testbed.progress import Progress
from testbed.reproduce.flow_entries import Entry, flow_entry
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.input.spelling import expectation

SCENARIOS: Final = ("clos96", "clos96-2to1")
SCHEDULERS: Final = ("ecmp", "crux", "crux-pa", "crux-ps-pa", "cassini", "sincronia", "taccl-star")
NETWORKS: Final[Mapping[str, str]] = {
    "window": "{transport: window}",
    "unlimited": "{transport: unlimited}",
    "dcqcn": "{transport: dcqcn}",
    "hpcc": "{transport: hpcc}",
    "spray": "{transport: dcqcn, load_balancing: spray}",
    "flowlet": "{transport: dcqcn, load_balancing: flowlet}",
    "adaptive": "{transport: dcqcn, load_balancing: adaptive}",
}
"""Column -> the section ``network`` of its runs; ``unlimited`` has pauses alone."""
LOSSY: Final[Mapping[str, str]] = {
    "go-back-n": "{transport: dcqcn, buffers: {when_full: go-back-n}}",
    "selective-repeat": "{transport: dcqcn, buffers: {when_full: selective-repeat}}",
    "lossy spray": "{transport: dcqcn, load_balancing: spray, buffers: {when_full: selective-repeat}}",
    "lossy adaptive": "{transport: dcqcn, load_balancing: adaptive, buffers: {when_full: selective-repeat}}",
}
"""The same where switches drop packets instead of pausing senders."""
BANDWIDTH: Final = 25.0
"""Links, messages and thresholds are so many times smaller than at line rate, packets are not."""
LINE_RATE: Final = "at line rate"
_MEASURE: Final = "measure={iterations: 5, warmup: 1, time_limit: 100s}"


@dataclass(frozen=True, slots=True)
class Case:
    """A scheduler on a network; ``bandwidth``: the scale of a network at line rate."""

    scenario: str
    scheduler: str
    network: str
    seed: int
    bandwidth: float = BANDWIDTH


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per scenario and scheduler, and those at line rate; ``BadInputError`` if ``--row`` names none."""
    rows = _chosen(settings)
    cases = [case for row in rows.values() for case in row]
    progress.phase(f"{len(cases)} simulations", len(cases))
    found: dict[Case, Entry | str] = {}
    with started(settings.processes, lambda pool: pool.map(simulated, cases)) as results:
        for case, result in zip(cases, results, strict=True):
            found[case] = result
            progress.advance_to(len(found))
    return [_row(label, row, found) for label, row in rows.items()]


def _chosen(settings: Settings) -> dict[str, tuple[Case, ...]]:
    rows = rows_of(settings.seed)
    wanted = settings.only or tuple(rows)
    for name in wanted:
        if not any(name in (label, label.partition("/")[0]) for label in rows):
            raise BadInputError(f"--row {name}: no such row, {expectation(name, tuple(rows))}")
    return {label: row for label, row in rows.items() if label in wanted or label.partition("/")[0] in wanted}


def rows_of(seed: int) -> dict[str, tuple[Case, ...]]:
    """Label -> the simulations of its columns."""
    rows = {
        f"{scenario}/{scheduler}": tuple(Case(scenario, scheduler, network, seed) for network in NETWORKS)
        for scenario in SCENARIOS
        for scheduler in SCHEDULERS
    }
    for scenario in SCENARIOS:
        for scheduler in SCHEDULERS:
            cases = tuple(Case(scenario, scheduler, network, seed) for network in LOSSY)
            rows[f"{scenario} lossy/{scheduler}"] = cases
    for scheduler in ("ecmp", "crux"):
        rows[f"{LINE_RATE}/{scheduler}"] = (Case(SCENARIOS[0], scheduler, "dcqcn", seed, 1.0),)
    return rows


def simulated(case: Case) -> Entry | str:
    """The entry of a run of ``case``, or why there is none."""
    scale = [] if case.network == "window" else [f"scale={{bandwidth: {case.bandwidth:g}}}"]
    overrides = [f"network={({**NETWORKS, **LOSSY})[case.network]}", *scale, _MEASURE, "checks=[]"]
    try:
        (experiment,) = prepare(
            case.scenario, engine="simulation", schedulers=[case.scheduler], overrides=overrides, seed=case.seed
        ).experiments
        return flow_entry(experiment)
    except RunFailedError as error:
        return str(error)


def _row(label: str, row: Sequence[Case], found: Mapping[Case, Entry | str]) -> PaperRow:
    here: dict[str, float] = {}
    problems = []
    for case in row:
        entry = found[case]
        if isinstance(entry, str):
            problems.append(f"{case.network}: {entry}")
            continue
        here[case.network] = float(entry["gpu_utilization"])
        here |= _congestion(case.network, entry["network"])
    return PaperRow(label, {}, here, "; ".join(problems), EXIT_FAILED if problems else EXIT_OK)


def _congestion(network: str, counted: Mapping[str, float]) -> dict[str, float]:
    """What is shown of congestion beside utilisation."""
    if network == "unlimited":
        held_s = counted["held_s"]
        return {"held": held_s, "victims": counted["victim_s"] / held_s if held_s else 0.0}
    if network == "dcqcn":
        return {"marked": counted["marked_share"], "pauses": counted["pauses"]}
    if network == "spray":
        return {"out_of_order": counted["out_of_order_share"]}
    return {"dropped": counted["dropped"]} if network == "go-back-n" else {}
