"""Coflows on a big switch of unit ports: the worked examples of Sincronia and Varys, as fluids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean

import pytest

from testbed.engines.flow.networks.fluid_network import FluidNetwork

Coflow = Sequence[tuple[int, int, float]]
"""(input port, output port, units) of each flow."""

FIGURE_1: Mapping[str, Coflow] = {
    "C1": [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 3, 1), (3, 2, 1), (3, 4, 1), (4, 3, 1), (4, 4, 1)],
    **{f"C{port + 1}": [(port, port, 2)] for port in range(1, 5)},
}
"""Sincronia's Figure 1 with its epsilon at 0."""


def completion_times(
    coflows: Mapping[str, Coflow], levels: Mapping[str, int], limits: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Serve the coflows at their levels from time 0 on; ``limits``: coflow -> rate of each of its flows."""
    ports = {port for flows in coflows.values() for one, other, _ in flows for port in (f"in{one}", f"out{other}")}
    network = FluidNetwork({port: 8.0 for port in sorted(ports)})
    owner = {}
    for name, flows in coflows.items():
        for one, other, units in flows:
            place = network.add((f"in{one}", f"out{other}"), levels[name])
            network.begin(place, units, 0.0, None, 0.0)
            network.set_limit(place, (limits or {}).get(name, inf))
            network.send(place, True)
            owner[place] = name
    now, ended = 0.0, dict.fromkeys(coflows, 0.0)
    while (step := network.next_event()) < inf:
        reached = network.advance(step)
        now += step
        for place in reached:
            ended[owner[place]] = now
    return ended


def test_varys_serves_the_smallest_bottleneck_first_at_the_least_rate_that_does() -> None:
    # C1 needs 2 s and C2 to C5 a little more: MADD gives each of its flows half a port.
    levels = {"C1": 0, "C2": 1, "C3": 1, "C4": 1, "C5": 1}
    ended = completion_times(FIGURE_1, levels, {"C1": 0.5})
    assert fmean(ended.values()) == pytest.approx(3.6)


def test_the_optimal_order_of_figure_1_averages_2_4() -> None:
    ended = completion_times(FIGURE_1, {"C2": 0, "C3": 1, "C4": 2, "C5": 3, "C1": 4})
    assert ended == pytest.approx({"C1": 4.0, "C2": 2.0, "C3": 2.0, "C4": 2.0, "C5": 2.0})
    assert fmean(ended.values()) == pytest.approx(2.4)


def test_the_bssi_order_of_figure_1_averages_2_8_where_a_coflows_own_flows_share_evenly() -> None:
    # The paper's 2.6 serves C1's flows one after the other, in the order of a list.
    ended = completion_times(FIGURE_1, {"C2": 0, "C3": 1, "C4": 2, "C1": 3, "C5": 4})
    assert fmean(ended.values()) == pytest.approx(2.8)


@pytest.mark.parametrize(("ports", "wide"), [(9, 3), (16, 3), (5, 2)])
def test_singles_first_beat_the_smallest_bottleneck_first_on_the_figure_4_family(ports: int, wide: int) -> None:
    singles = {f"single {port}": [(port, port, 2.0)] for port in range(ports)}
    broad = {f"wide {number}": [(port, port, 1.0) for port in range(ports)] for number in range(wide)}
    coflows = {**singles, **broad}
    smallest_first = {name: (int(name.split()[1]) if name in broad else wide) for name in coflows}
    singles_first = {name: (1 + int(name.split()[1]) if name in broad else 0) for name in coflows}
    sebf = fmean(completion_times(coflows, smallest_first).values())
    better = fmean(completion_times(coflows, singles_first).values())
    assert sebf == pytest.approx((sum(range(1, wide + 1)) + ports * (wide + 2)) / (ports + wide))
    assert better == pytest.approx((2 * ports + sum(2 + i for i in range(1, wide + 1))) / (ports + wide))
    assert better < sebf
