"""A small fabric on which messages are sent as packets at line rate, without jobs; for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import yaml

from testbed.api import prepare
from testbed.engines.flow.networks.rdma_network import RdmaNetwork
from testbed.engines.flow.networks.ways import all_ways
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.network_model import NetworkModel
from testbed.rdma.transports.dispatch import defaults_of
from topologies.fabric import Fabric

GBPS = 1e9


def network_model(transport: str = "unlimited", **changes: object) -> NetworkModel:
    """A network with the defaults of ``transport`` but for ``changes``."""
    model = NetworkModel(transport, defaults_of(transport))  # type: ignore[arg-type]
    return replace(model, **changes)  # type: ignore[arg-type]


def experiment_of(
    folder: Path,
    model: NetworkModel,
    *,
    hosts: int,
    tors: int = 1,
    aggregations: int = 1,
    rate: int = 100,
    seed: int = 1,
) -> Experiment:
    """An experiment on a Clos fabric of links of ``rate`` Gbit/s, of which only the fabric and the network count."""
    shape = {"kind": "clos", "hosts": hosts, "tors": tors, "aggregations": aggregations}
    return experiment_on(folder, model, shape, rate, seed)


def experiment_on(
    folder: Path, model: NetworkModel, shape: Mapping[str, object], rate: float, seed: int = 1
) -> Experiment:
    """The same on a fabric of any ``shape``: what a scenario says of it besides rates, GPUs and NICs."""
    path = folder / "fabric.yaml"
    each = {"gpus_per_host": 1, "nics_per_host": 1, "port_rate": f"{rate}Gbps", "fabric_rate": f"{rate}Gbps"}
    job = {"name": "a", "model": "bert", "placement": ["h0", "h1"]}
    document = {"fabric": {**shape, **each}, "jobs": [job], "schedulers": ["ecmp"]}
    path.write_text(yaml.safe_dump(document), "utf-8")
    (experiment,) = prepare(path, engine="simulation").experiments
    return replace(experiment, network=model, scale=Scale(1.0, 1.0), seed=seed)


@dataclass
class Traffic:
    """Flows on the network of an experiment, and when their messages ended."""

    experiment: Experiment
    now: float = 0.0
    ended: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.network = RdmaNetwork(self.capacity, self.experiment)

    @property
    def fabric(self) -> Fabric:
        """What the links are of."""
        return self.experiment.fabric

    @property
    def capacity(self) -> Mapping[str, float]:
        """Link -> bit/s."""
        return {name: link.capacity for name, link in self.fabric.links.items()}

    def way(self, source: str, target: str, number: int = 0) -> Sequence[str]:
        """One of the shortest paths from host to host."""
        paths = self.fabric.candidate_paths(f"{source}n0p0", f"{target}n0p0")
        return paths[number % len(paths)]

    def send(self, way: Sequence[str], size: float, level: int = 0, place: int | None = None) -> int:
        """Send a message of ``size`` bytes along ``way``, or as the network balances; return the place of its flow."""
        if place is None:
            place = self.network.add(way, level)
            if self.experiment.spreads:
                self.network.lead_over(place, *all_ways(way, self.fabric, self.fabric))
        self.network.begin(place, size, inf, None, 0.0)
        self.network.send(place, True)
        return place

    def queued(self, link: str, level: int = 0) -> float:
        """Bytes on the wire that wait at ``link``."""
        return float(self.network._state.queues[self.network.number[link], level].queued)

    def rates(self, places: Sequence[int], seconds: float) -> list[float]:
        """Let packets move for ``seconds``; return what arrived of each flow meanwhile, in bit/s."""
        begun, before = self.now, [self.network.total(place) for place in places]
        self.run(begun + seconds)
        passed = self.now - begun
        return [8 * (self.network.total(place) - was) / passed for place, was in zip(places, before, strict=True)]

    def run(self, until: float = inf) -> None:
        """Let packets move until all messages have ended, or until a time."""
        while True:
            self.now, reached = self.network.run(self.now, until)
            for place in reached:
                if self.network.ended(place):
                    self.ended[place] = self.now
            if not reached:
                return


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness: 1 if all are equal."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
