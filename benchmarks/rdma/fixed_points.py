"""Flows that share a link for long, by transport: rates, queues and marks beside the authors' analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Final

from benchmarks.common import Line, say
from benchmarks.rdma.compared import at_least, at_most, compared
from benchmarks.rdma.dcqcn_theory import Setting, algorithm_marks, approximate_marks, convergence_s, fluid_marks
from benchmarks.rdma.incast import incast
from benchmarks.rdma.traffic import Traffic, experiment_of, jain, network_model
from testbed.engines.flow.networks.rdma_state import HEADERS
from testbed.experiment.network_model import Buffers, Delays, Ecn, NetworkModel

ENDLESS: Final = Buffers(1e9, 1.0)
"""Room for any queue: nothing is paused."""
DCQCN_ECN: Final = Ecn(5e3, 200e3, 0.01, 40e9)
"""Defaults of the analysis: comments of ``fluidmodel/dcqcn`` in its repository, captions of the figure on stability."""
DCTCP_FLOWS: Final = (2, 10, 40)
"""Of figure 12 of the DCTCP paper, as are the next two."""
DCTCP_MARKS: Final = 40
DCTCP_PACKET: Final = 1500
FAIR: Final = 0.95


def dcqcn(folder: Path, flows: Sequence[int]) -> Iterator[Line]:
    """DCQCN's fixed point at 40 Gbit/s, where the ramp of marks has one; else the queue is to stand at its top."""
    model = network_model("dcqcn", ecn=DCQCN_ECN, mtu=1024, buffers=ENDLESS)
    for count in flows:
        say(f"dcqcn, {count} flows")
        setting = Setting(count)
        found = incast(folder, model, count, 40, steady_s=0.1, seconds=0.1)
        alone, others = algorithm_marks(setting), (approximate_marks(setting), fluid_marks(setting))
        above = f"above the ramp {found.above(setting.maximum):.2%} of the time"
        shares = f"equations 14 and 11: {', '.join(f'{100 * share:.3f}' for share in others)}; {above}"
        yield compared("DCQCN: link, Gbit/s", count, sum(found.shares) / 1e9, 40, 0.01, "its rate")
        if alone > setting.probability:
            yield compared(
                "DCQCN: queue, KB", count, found.queue / 1e3, setting.maximum / 1e3, (0.2, 0.1), "ramp's top"
            )
            yield compared("DCQCN: marked, %", count, 100 * found.marked, 100 * alone, None, shares)
            continue
        queues = f"equations 14 and 11: {', '.join(f'{setting.queue(share) / 1e3:.1f}' for share in others)}"
        yield compared("DCQCN: queue, KB", count, found.queue / 1e3, setting.queue(alone) / 1e3, 0.1, queues)
        yield compared("DCQCN: marked, %", count, 100 * found.marked, 100 * alone, 0.1, shares)


def dcqcn_convergence(folder: Path) -> Iterator[Line]:
    """Two DCQCN flows, of which one begins when the other has had the link for 50 ms."""
    say("dcqcn, convergence")
    began, step, share = 0.05, 5e-3, 20e9
    model = network_model("dcqcn", ecn=DCQCN_ECN, mtu=1024, buffers=ENDLESS)
    traffic = Traffic(experiment_of(folder, model, hosts=3, rate=40))
    places = [traffic.send(traffic.way("h1", "h0"), 1e12)]
    traffic.run(began)
    places.append(traffic.send(traffic.way("h2", "h0"), 1e12))
    converged, apart = 0.0, share
    while apart > 0.1 * share:
        first, second = traffic.rates(places, step)
        converged, apart = traffic.now - began, abs(first - second)
    most = convergence_s(Setting(2))
    yield at_most(
        "DCQCN: ms to 10 % of a share", 2, 1e3 * converged, 1e3 * most, "CoNEXT 2016, theorem 2 and appendix B"
    )
    yield at_least("DCQCN: Jain's index thereafter", 2, jain(traffic.rates(places, 0.05)), FAIR, "1 if all are equal")


def hpcc(folder: Path, flows: Sequence[int]) -> Iterator[Line]:
    """HPCC at 100 Gbit/s with a round trip of 20 us.

    At its fixed point (algorithm 1) W = W eta / U + W_AI for each of N flows and, without a queue, U = N W / (B T): so
    U = eta + N W_AI / (B T).
    """
    model = network_model("hpcc", mtu=1024, delays=Delays(5e-6))
    for count in flows:
        say(f"hpcc, {count} flows")
        found = incast(folder, model, count, 100, steady_s=0.02, seconds=0.02)
        load = model.parameters["utilization"] + count * model.parameters["additive"]
        source = "eta + N W_AI / (B T), by algorithm 1"
        yield compared("HPCC: link, Gbit/s", count, sum(found.shares) / 1e9, 100 * load, 0.01, source)
        packets = found.queue / (model.mtu + HEADERS)
        yield at_most("HPCC: mean queue, packets", count, packets, count, "a packet of each flow")


def dctcp(folder: Path) -> Iterator[Line]:
    """DCTCP in the setting of its paper's figure 12: 10 Gbit/s, 100 us, K of 40 packets (of 1,500 bytes here)."""
    threshold = DCTCP_MARKS * DCTCP_PACKET
    model = network_model(
        "dctcp",
        ecn=Ecn(threshold, threshold, 1.0, 10e9),
        mtu=DCTCP_PACKET - HEADERS,
        buffers=ENDLESS,
        delays=Delays(25e-6),
    )
    per_trip = 10e9 / 8 / model.mtu * 100e-6
    for count in DCTCP_FLOWS:
        say(f"dctcp, {count} flows")
        found = incast(folder, model, count, 10, steady_s=0.1, seconds=0.1)
        low, high = (found.quantile(share) / DCTCP_PACKET for share in (0.01, 0.99))
        few = count < DCTCP_FLOWS[-1]  # more are not in step, the paper says, and the analysis exaggerates
        source = "SIGCOMM 2010, equation"
        yield compared("DCTCP: link, Gbit/s", count, sum(found.shares) / 1e9, 10, 0.01, "its rate")
        yield compared(
            "DCTCP: 99 % of the queue, packets", count, high, DCTCP_MARKS + count, 0.1 if few else None, f"{source} 10"
        )
        swing = sqrt(2 * count * (per_trip + DCTCP_MARKS)) / 2
        yield compared(
            "DCTCP: 1 to 99 %, packets", count, high - low, swing, 0.25 if few else None, f"{source} 8: amplitude"
        )


def fairness(folder: Path, flows: Sequence[int]) -> Iterator[Line]:
    """Jain's index of incasts at 100 Gbit/s with packets of 4,096 bytes, by transport and delay of a cable."""
    for transport in ("unlimited", "dcqcn", "dctcp", "hpcc"):
        for delay in (5e-6, 10e-6):
            say(f"{transport}, fairness at {1e6 * delay:g} us")
            model = _fair_model(transport, delay)
            found = [jain(incast(folder, model, count, 100, steady_s=0.05, seconds=0.02).shares) for count in flows]
            each = ", ".join(f"{index:.3f}" for index in found)
            what = f"{transport}: Jain's index, {1e6 * delay:g} us a cable"
            counts = ", ".join(map(str, flows))
            yield at_least(what, counts, min(found), FAIR, each)


def _fair_model(transport: str, delay: float) -> NetworkModel:
    if transport == "dctcp":
        return network_model(transport, delays=Delays(delay), ecn=Ecn(300e3, 300e3, 1.0))
    return network_model(transport, delays=Delays(delay))
