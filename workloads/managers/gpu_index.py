"""A fabric as placement needs it, in numbers: GPUs of a host, hosts of a ToR, each in the fabric's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from topologies.fabric import Fabric
from workloads.managers.capacities.gpu_types import ONE_TYPE, GpuTypes
from workloads.placement import tor_of

Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Structure:
    """A fabric's GPUs, hosts and ToRs by index: GPUs host by host, ToRs as their first host comes."""

    fabric: Fabric
    """The fabric."""
    hosts: tuple[str, ...]
    """Names of the hosts."""
    tors: tuple[str, ...]
    """Names of the ToRs."""
    gpus: tuple[str, ...]
    """Names of the GPUs."""
    host_of_gpu: Ints
    """Shape (GPUs,): index of each GPU's host."""
    tor_of_host: Ints
    """Shape (hosts,): index of the ToR of each host's first port."""
    first_gpu: Ints
    """Shape (hosts,): index of each host's first GPU."""
    gpus_of_host: Ints
    """Shape (hosts,): how many GPUs each has."""
    gpu_types: GpuTypes = ONE_TYPE
    """How fast the GPUs of each host are."""

    @cached_property
    def speed_of_host(self) -> Floats:
        """Shape (hosts,): speed of each host's GPUs, 1 by default."""
        return np.array([self.gpu_types.speed_of_host.get(host, 1.0) for host in self.hosts])

    @cached_property
    def type_of_host(self) -> tuple[str, ...]:
        """Names of the hosts' GPU types, in the order of ``hosts``."""
        return tuple(map(self.gpu_types.type_of, self.hosts))

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The GPU types, the fastest first."""
        return tuple(sorted(self.speed_of_type, key=lambda name: (-self.speed_of_type[name], name)))

    @cached_property
    def speed_of_type(self) -> Mapping[str, float]:
        """GPU type -> its speed."""
        return dict(zip(self.type_of_host, self.speed_of_host.tolist(), strict=True))

    @cached_property
    def type_number_of_host(self) -> Ints:
        """Shape (hosts,): place of each host's type in ``types``."""
        places = {name: place for place, name in enumerate(self.types)}
        return frozen(np.array([places[name] for name in self.type_of_host], dtype=np.intp))

    @cached_property
    def gpus_of_type(self) -> Mapping[str, int]:
        """GPU type -> its GPUs."""
        sizes = np.zeros(len(self.types), dtype=np.intp)
        np.add.at(sizes, self.type_number_of_host, self.gpus_of_host)
        return dict(zip(self.types, sizes.tolist(), strict=True))

    @cached_property
    def gpu_index(self) -> Mapping[str, int]:
        """GPU name -> index."""
        return {gpu: index for index, gpu in enumerate(self.gpus)}

    @cached_property
    def host_index(self) -> Mapping[str, int]:
        """Host name -> index."""
        return {host: index for index, host in enumerate(self.hosts)}

    @cached_property
    def tor_of_gpu(self) -> Ints:
        """ToR of each GPU."""
        return frozen(self.tor_of_host[self.host_of_gpu])

    @cached_property
    def nic_of_gpu(self) -> Ints:
        """Nearest NIC of each GPU, by index: NICs as their first GPU comes."""
        nics = {nic: index for index, nic in enumerate(dict.fromkeys(self.fabric.nic_of_gpu[gpu] for gpu in self.gpus))}
        return frozen(np.array([nics[self.fabric.nic_of_gpu[gpu]] for gpu in self.gpus], dtype=np.intp))

    @cached_property
    def gpus_of_nic(self) -> Ints:
        """Number of GPUs nearest to each NIC."""
        return frozen(np.bincount(self.nic_of_gpu))

    @cached_property
    def gpus_of_tor(self) -> Ints:
        """Number of GPUs under each ToR."""
        return frozen(self.by_tor(self.gpus_of_host))

    def by_tor(self, by_host: Ints) -> Ints:
        """Sums over the hosts of each ToR."""
        total = np.zeros(len(self.tors), dtype=np.intp)
        np.add.at(total, self.tor_of_host, by_host)
        return total

    def indices(self, gpus: Iterable[str]) -> Ints:
        """Indices of GPUs given by name; ``ValueError`` for one that the fabric lacks."""
        try:
            return np.array([self.gpu_index[gpu] for gpu in gpus], dtype=np.intp)
        except KeyError as error:
            raise ValueError(f"there is no GPU {error} in fabric {self.fabric.name}") from None

    def gpus_on(self, hosts: Iterable[str]) -> Ints:
        """Indices of the GPUs of hosts given by name; ``ValueError`` for one that the fabric lacks."""
        wanted = np.zeros(len(self.hosts), dtype=np.bool_)
        for host in hosts:
            if host not in self.host_index:
                raise ValueError(f"there is no host '{host}' in fabric {self.fabric.name}")
            wanted[self.host_index[host]] = True
        return np.flatnonzero(wanted[self.host_of_gpu])

    def in_ring(self, chosen: Ints) -> tuple[str, ...]:
        """Names of the ``chosen`` GPUs, ToR by ToR and host by host, so that a ring leaves each ToR once."""
        ordered = np.sort(chosen)
        ordered = ordered[np.argsort(self.tor_of_gpu[ordered], kind="stable")]
        return tuple(self.gpus[index] for index in ordered.tolist())


def structure_of(fabric: Fabric, gpu_types: GpuTypes = ONE_TYPE) -> Structure:
    """Return the structure of ``fabric``; compute it once, and pass it on with the state of the cluster."""
    hosts = tuple(fabric.hosts)
    sizes = [len(host.gpus) for host in fabric.hosts.values()]
    above = [tor_of(fabric, host) for host in fabric.hosts.values()]
    tors = {name: index for index, name in enumerate(dict.fromkeys(above))}
    return Structure(
        fabric,
        hosts,
        tuple(tors),
        fabric.gpus,
        host_of_gpu=frozen(np.repeat(np.arange(len(hosts)), sizes)),
        tor_of_host=frozen(np.array([tors[name] for name in above], dtype=np.intp)),
        first_gpu=frozen(np.cumsum([0, *sizes[:-1]])),
        gpus_of_host=frozen(np.array(sizes, dtype=np.intp)),
        gpu_types=gpu_types,
    )


def frozen(array: Ints) -> Ints:
    """Return ``array``, now read-only."""
    array.setflags(write=False)
    return array
