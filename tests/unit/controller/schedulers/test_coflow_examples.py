"""The worked examples of the papers on a big switch with ports of one unit per second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import permutations

import pytest
from greedy_rates import greedy_rates

from controller.schedulers.crux.compression import first_levels_own
from controller.schedulers.sincronia import bssi, bssi_rounds
from controller.schedulers.varys import allocate, even_levels

Port = tuple[str, int]
Flows = list[tuple[Port, Port, Fraction]]
Coflows = Mapping[str, Flows]
Rates = Callable[[Mapping[str, Mapping[int, Fraction]]], Mapping[tuple[str, int], Fraction]]

E = Fraction(1, 1000)


def coflow(*flows: tuple[int, int], size: Fraction | int = 1) -> Flows:
    return [(("in", source), ("out", target), Fraction(size)) for source, target in flows]


def figure_1(extra: Fraction) -> Coflows:
    """C1 has eight flows of one unit, listed row by row; C2 to C5 one flow each, two units and a little more."""
    rows = [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3), (4, 4)]
    return {"C1": coflow(*rows), **{f"C{i + 1}": coflow((i, i), size=2 + extra) for i in range(1, 5)}}


def figure_4(ports: int, wide: int) -> Coflows:
    """``ports`` coflows of one flow of two units, and ``wide`` coflows of one unit on every port."""
    singles = {f"S{i}": coflow((i, i), size=2) for i in range(ports)}
    return singles | {f"W{i}": coflow(*((p, p) for p in range(ports))) for i in range(wide)}


def demands(coflows: Coflows) -> dict[str, dict[Port, Fraction]]:
    found: dict[str, dict[Port, Fraction]] = {}
    for name, flows in coflows.items():
        loads = found.setdefault(name, {})
        for *ports, size in flows:
            for port in ports:
                loads[port] = loads.get(port, Fraction(0)) + size
    return found


def completion_times(coflows: Coflows, rates_of: Rates) -> dict[str, Fraction]:
    """Play the coflows, all there at 0, with rates set anew whenever a flow ends."""
    left = {name: {i: flow[2] for i, flow in enumerate(flows)} for name, flows in coflows.items()}
    now, done = Fraction(0), {}
    while left:
        rates = rates_of(left)
        step = min(left[name][i] / rate for (name, i), rate in rates.items() if rate > 0)
        now += step
        for (name, i), rate in rates.items():
            left[name][i] -= rate * step
        for name in list(left):
            left[name] = {i: size for i, size in left[name].items() if size > Fraction(1, 10**9)}
            if not left[name]:
                done[name] = now
                del left[name]
    return done


def greedy(coflows: Coflows, order: tuple[str, ...]) -> Rates:
    capacity = {port: Fraction(1) for flows in coflows.values() for flow in flows for port in flow[:2]}

    def rates(left: Mapping[str, Mapping[int, Fraction]]) -> Mapping[tuple[str, int], Fraction]:
        open_flows = {name: {(name, i): coflows[name][i][:2] for i in left[name]} for name in left}
        return greedy_rates(order, open_flows, capacity)

    return rates


def varys(coflows: Coflows) -> Rates:
    def rates(left: Mapping[str, Mapping[int, Fraction]]) -> Mapping[tuple[str, int], Fraction]:
        named = {
            name: [
                (f"{name}/{i}", str(coflows[name][i][0]), str(coflows[name][i][1]), float(left[name][i]))
                for i in left[name]
            ]
            for name in left
        }
        capacity = {port: 1.0 for flows in named.values() for flow in flows for port in flow[1:3]}
        found = allocate(named, capacity)
        return {(name, i): Fraction(found[f"{name}/{i}"]) for name in left for i in left[name]}

    return rates


def average(times: Mapping[str, Fraction]) -> Fraction:
    return sum(times.values(), Fraction(0)) / len(times)


LARGEST_INGRESS = tuple(("in", index) for index in (4, 3, 2, 1))


def test_table_2_of_sincronia_comes_out_exactly() -> None:
    rounds = list(bssi_rounds(demands(figure_1(E)), ties=LARGEST_INGRESS))
    assert [(choice.port, choice.coflow) for choice in rounds] == [
        (("in", 4), "C5"),
        (("in", 3), "C1"),
        (("in", 3), "C4"),
        (("in", 2), "C3"),
        (("in", 1), "C2"),
    ]
    assert [tuple(choice.weights.values()) for choice in rounds] == [
        (E / (2 + E), 1, 1, 1, 0),
        (0, 1, 1, 1 - E / 2, 0),
        (0, 1, 1, 0, 0),
        (0, 1, 0, 0, 0),
        (0, 0, 0, 0, 0),
    ]


def test_the_order_of_figure_1_depends_on_which_of_equal_ports_comes_first() -> None:
    loads = demands(figure_1(E))
    assert bssi(loads, ties=LARGEST_INGRESS) == ("C2", "C3", "C4", "C1", "C5")
    assert bssi(loads) == ("C5", "C4", "C3", "C1", "C2")


def test_figure_1_takes_sincronia_2_6_on_average() -> None:
    coflows = figure_1(Fraction(0))
    order = bssi(demands(figure_1(E)), ties=LARGEST_INGRESS)
    assert average(completion_times(coflows, greedy(coflows, order))) == Fraction(26, 10)


def test_figure_1_takes_varys_3_6_on_average() -> None:
    coflows = figure_1(Fraction(0))
    assert average(completion_times(coflows, varys(coflows))) == pytest.approx(3.6)


def test_figure_1_takes_the_best_order_2_4_on_average() -> None:
    coflows = figure_1(Fraction(0))
    times = {order: average(completion_times(coflows, greedy(coflows, order))) for order in permutations(coflows)}
    assert min(times.values()) == times["C2", "C3", "C4", "C5", "C1"] == Fraction(24, 10)


def test_the_average_of_an_order_depends_on_the_listing_of_flows() -> None:
    coflows = dict(figure_1(Fraction(0)))
    rows = coflows["C1"]
    order, found = ("C2", "C3", "C4", "C1", "C5"), set()
    for listing in permutations(rows, 8):
        coflows["C1"] = list(listing)
        found.add(average(completion_times(coflows, greedy(coflows, order))))
        if len(found) > 1:
            break
    assert len(found) > 1


@pytest.mark.parametrize(("ports", "wide"), [(9, 3), (16, 3), (4, 2)])
def test_figure_4_sebf_serves_the_wide_coflows_first(ports: int, wide: int) -> None:
    coflows = figure_4(ports, wide)
    expected = Fraction(sum(range(1, wide + 1)) + ports * (wide + 2), ports + wide)
    assert average(completion_times(coflows, varys(coflows))) == pytest.approx(float(expected))


@pytest.mark.parametrize(("ports", "wide", "printed"), [(9, 3, 2.5), (16, 3, 2.316), (4, 2, None)])
def test_figure_4_is_better_with_the_singles_first(ports: int, wide: int, printed: float | None) -> None:
    coflows = figure_4(ports, wide)
    times = completion_times(coflows, greedy(coflows, tuple(coflows)))
    expected = Fraction(2 * ports + sum(2 + i for i in range(1, wide + 1)), ports + wide)
    assert average(times) == expected
    assert printed is None or float(expected) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize(("ports", "wide"), [(9, 3), (16, 3)])
def test_figure_4_is_better_in_the_order_of_bssi_than_in_that_of_sebf(ports: int, wide: int) -> None:
    coflows = figure_4(ports, wide)
    order = bssi(demands(coflows))
    ours, theirs = (average(completion_times(coflows, rates)) for rates in (greedy(coflows, order), varys(coflows)))
    assert ours < theirs


def test_figure_13_of_crux_compresses_four_jobs_into_two_levels() -> None:
    order = ("J1", "J2", "J3", "J4")
    printed_high = {"sincronia": (1, 0, 0, 0), "varys": (1, 1, 0, 0)}
    assert tuple(1 - level for level in first_levels_own(order, 2).values()) == printed_high["sincronia"]
    assert tuple(1 - level for level in even_levels(order, 2).values()) == printed_high["varys"]
