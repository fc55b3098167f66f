"""Segments: hosts under the same ToRs, joined by aggregation switches; what the generators of this folder share."""

from __future__ import annotations

from dataclasses import dataclass

from topologies.fabric import Fabric
from topologies.hosts import FabricBuilder, HostShape, require_counts, require_multiple, require_rates


@dataclass(frozen=True, slots=True)
class Segments:
    """Hosts in equal ``segments``, whose ToRs are in ``rails`` groups of one ToR per port of a NIC.

    NIC k of a host is cabled to group ``k % rails`` of its segment, its port p to ToR p of the group. With as many
    ``rails`` as NICs every rail has ToRs of its own; with one, all NICs of a host share them. In two ``planes`` the
    ToRs of port p see only the p-th half of the aggregation switches. Raises ``ValueError`` naming the parameter that
    makes it impossible.
    """

    shape: HostShape
    segments: int
    rails: int = 1
    planes: int = 1
    hosts_per_segment: int | None = None
    """Of all but the last, which may have fewer; None: as many in each."""

    def __post_init__(self) -> None:
        require_counts(segments=self.segments)
        if self.planes not in (1, self.shape.ports_per_nic):
            raise ValueError(f"planes must be 1 or {self.shape.ports_per_nic}, not {self.planes}")
        if self.hosts_per_segment is None:
            require_multiple("hosts", self.shape.hosts, self.segments, "segments")
        elif -(-self.shape.hosts // self.hosts_per_segment) != self.segments:
            filled = f"{self.hosts_per_segment} do not put {self.shape.hosts} hosts into {self.segments} segments"
            raise ValueError(f"hosts_per_segment must fill all segments but the last, {filled}")

    def build(
        self, kind: str, aggregations: int, fabric_rate: float, parallel_links: int = 1, bonded: bool = False
    ) -> Fabric:
        """Return the fabric with ``parallel_links`` cables of ``fabric_rate`` bit/s between ToRs and ``aggregations``.

        ``bonded`` makes these one cable of the summed rate.
        """
        require_counts(aggregations=aggregations, parallel_links=parallel_links)
        require_rates(fabric_rate=fabric_rate)
        require_multiple("aggregations", aggregations, self.planes, "planes")
        builder = FabricBuilder()
        sides = self.shape.ports_per_nic
        tors = builder.add_switches("tor", self.segments * self.rails * sides)
        upper = builder.add_switches("agg", aggregations)
        for index in range(self.shape.hosts):
            builder.add_host_by_nic(self.shape, index, [self._tors_of(index, nic, tors) for nic in self._nics])
        cables, rate = (1, fabric_rate * parallel_links) if bonded else (parallel_links, fabric_rate)
        per_plane = aggregations // self.planes
        for plane in range(self.planes):
            seen = upper[plane * per_plane : (plane + 1) * per_plane]
            builder.mesh(tors[plane :: self.planes], seen, "tor-agg", rate, cables)
        return builder.build(kind, self._description(len(tors), aggregations), self.shape)

    @property
    def _nics(self) -> range:
        return range(self.shape.nics)

    def _tors_of(self, host: int, nic: int, tors: tuple[str, ...]) -> tuple[str, ...]:
        """One ToR per port of the NIC."""
        segment = host // (self.hosts_per_segment or self.shape.hosts // self.segments)
        first = (segment * self.rails + nic % self.rails) * self.shape.ports_per_nic
        return tors[first : first + self.shape.ports_per_nic]

    def _description(self, tors: int, aggregations: int) -> str:
        planes = f" in {self.planes} planes" if self.planes > 1 else ""
        segments = f"{self.segments} segments" if self.segments > 1 else "a segment"
        hosts = f"{self.shape.hosts} hosts x {self.shape.gpus} GPUs in {segments}"
        return f"{hosts}, {tors} ToRs, {aggregations} aggregation{planes}"
