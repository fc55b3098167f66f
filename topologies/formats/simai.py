"""SimAI topologies: the text files that ``gen_Topo_Template.py`` of aliyun/SimAI writes (Wang et al., NSDI'25).

Line 1: ``nodes gpus_per_server nvswitches switches links gpu_type``; line 2: the ids of all switches, NVSwitches
first; then a cable per line: ``source target bandwidth latency error``. GPUs are the nodes ``0`` to ``n - 1``, server
by server. Every GPU has a NIC of its own, with a port for each of its cables. Latency is not emulated, a link that
loses packets is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.wiring import AS_USUAL, Cable, Inside, WiredHost, WiringError, build, tiers_of
from topologies.hosts import NVLINK_RATE, HostShape
from topologies.limits import FABRIC_FILE_BYTES, HOSTS, LINKS, LimitError, line_of_damage, read_text
from topologies.units import parse_rate

HEADER: Final = "nodes, GPUs per server, NVSwitches, switches, links and GPU type"
CABLE: Final = "source, target, bandwidth, latency and error rate"


@dataclass(frozen=True, slots=True)
class _Header:
    nodes: int
    gpus_per_server: int
    nvswitches: int
    switches: int
    links: int
    gpu_type: str

    @property
    def gpus(self) -> int:
        return self.nodes - self.nvswitches - self.switches


@dataclass(slots=True)
class _Cables:
    """What the lines of cables say, by what they join."""

    nvlink: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """GPU -> (NVSwitch, bit/s) of its cables."""
    ports: dict[int, list[Cable]] = field(default_factory=dict)
    """GPU -> cables of its NIC."""
    above: list[Cable] = field(default_factory=list)
    """Between switches."""


def read(path: Path, inside: Inside = AS_USUAL) -> Fabric:
    """Return the fabric of a SimAI topology file; raises :class:`FabricFileError` naming the line that is wrong."""
    try:
        text = read_text(path, FABRIC_FILE_BYTES)
    except UnicodeDecodeError as error:
        raise FabricFileError(str(path), line_of_damage(error), "not UTF-8 text", "a SimAI topology") from None
    except LimitError as error:
        raise FabricFileError(str(path), None, str(error), f"a file of at most {FABRIC_FILE_BYTES} bytes") from None
    except OSError as error:
        raise FabricFileError(str(path), None, f"cannot be read ({error.strerror})", "a SimAI topology") from None
    return _Reader(str(path), text.splitlines(), inside).fabric()


class _Reader:
    def __init__(self, file: str, lines: Sequence[str], inside: Inside) -> None:
        self._file = file
        self._lines = lines
        self._inside = inside

    def fabric(self) -> Fabric:
        header = self._header()
        switches = self._switch_ids(header)
        nvswitches, network = switches[: header.nvswitches], switches[header.nvswitches :]
        cables = self._cables(header, frozenset(nvswitches), frozenset(network))
        hosts = [self._host(header, first, cables) for first in range(0, header.gpus, header.gpus_per_server)]
        names = [str(switch) for switch in network]
        try:
            tiers = tiers_of(hosts, names, cables.above)
            counts = Counter(tiers.values())
            above = ", ".join(f"{counts[tier]} {tier}" for tier in ("tor", "agg", "core") if counts[tier])
            about = f"{len(hosts)} hosts x {header.gpus_per_server} {header.gpu_type}, {above}"
            return build("simai", about, hosts, tiers, cables.above)
        except WiringError as error:
            raise self._error(error.line, error.what, error.expected) from None
        except ValueError as error:
            raise self._error(1, str(error), "a smaller fabric") from None

    def _error(self, line: int | None, what: str, expected: str) -> FabricFileError:
        return FabricFileError(self._file, line, what, expected)

    def _header(self) -> _Header:
        words = self._lines[0].split() if self._lines else []
        if len(words) != 6 or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words[:5]):
            raise self._error(1, f"the header is {' '.join(words)!r}", HEADER)
        nodes, gpus_per_server, nvswitches, switches, links = (int(word) for word in words[:5])
        header = _Header(nodes, gpus_per_server, nvswitches, switches, links, words[5])
        if header.gpus < 1 or header.gpus_per_server < 1 or header.gpus % header.gpus_per_server:
            what = f"{header.gpus} GPUs on servers of {header.gpus_per_server}"
            raise self._error(1, what, "nodes less switches to be GPUs of whole servers")
        if header.gpus > HOSTS * 8 or header.links > LINKS:
            raise self._error(1, f"{header.gpus} GPUs and {header.links} links", f"at most {HOSTS * 8} and {LINKS}")
        return header

    def _switch_ids(self, header: _Header) -> list[int]:
        words = self._lines[1].split() if len(self._lines) > 1 else []
        wanted = list(range(header.gpus, header.nodes))
        ids = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 10]
        if len(ids) != len(words) or sorted(ids) != wanted:
            what = f"{len(words)} ids of switches"
            raise self._error(2, what, f"the ids {header.gpus} to {header.nodes - 1}, each once")
        return ids

    def _cables(self, header: _Header, nvswitches: frozenset[int], network: frozenset[int]) -> _Cables:
        cables, count = _Cables(), 0
        for number, source, target, rate in self._cable_lines(header):
            count += 1
            low, high = (target, source) if target < header.gpus else (source, target)
            if low < header.gpus and high in nvswitches:
                cables.nvlink.setdefault(low, []).append((high, rate))
            elif low < header.gpus and high in network:
                cables.ports.setdefault(low, []).append(Cable(str(low), str(high), rate, number))
            elif low in network and high in network and low != high:
                cables.above.append(Cable(str(low), str(high), rate, number))
            else:
                raise self._error(
                    number, f"a cable joins {source} and {target}", "GPU to NVSwitch, GPU to switch or switch to switch"
                )
        if count != header.links:
            raise self._error(1, f"{header.links} links are announced and {count} follow", "as many links as announced")
        return cables

    def _cable_lines(self, header: _Header) -> Iterator[tuple[int, int, int, float]]:
        for number, line in enumerate(self._lines[2:], 3):
            words = line.split()
            if not words:
                continue
            if len(words) != 5:
                raise self._error(number, f"{len(words)} words", CABLE)
            source, target = (self._node(number, word, header) for word in words[:2])
            try:
                rate = parse_rate(words[2])
            except ValueError:
                rate = math.nan
            if not 1.0 <= rate <= 1e18:
                raise self._error(number, f"bandwidth is {words[2]!r}", "a rate such as 200Gbps")
            self._require_lossless(number, words[4])
            yield number, source, target, rate

    def _node(self, number: int, word: str, header: _Header) -> int:
        node = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else -1
        if not 0 <= node < header.nodes:
            raise self._error(number, f"unknown node {word!r}", f"0 to {header.nodes - 1}")
        return node

    def _require_lossless(self, number: int, word: str) -> None:
        try:
            share = float(word)
        except ValueError:
            share = math.nan
        if share != 0.0:
            raise self._error(number, f"error rate is {word!r}", "0: losses are not emulated")

    def _host(self, header: _Header, first: int, cables: _Cables) -> WiredHost:
        """The server whose first GPU is ``first``."""
        gpus = range(first, first + header.gpus_per_server)
        bare = next((gpu for gpu in gpus if gpu not in cables.ports), None)
        if bare is not None:
            raise self._error(None, f"GPU {bare} has no cable to a switch", "a NIC for every GPU")
        ports = tuple(tuple(cables.ports[gpu]) for gpu in gpus)
        shape = HostShape(
            hosts=header.gpus // header.gpus_per_server,
            gpus=header.gpus_per_server,
            nics=header.gpus_per_server,
            ports_per_nic=max(len(of_nic) for of_nic in ports),
            port_rate=ports[0][0].rate,
            pcie_rate=self._inside.pcie_rate,
            nvlink_rate=self._nvlink_rate(gpus, cables.nvlink),
            intra_host=self._inside.intra_host,
            pcie_queues=self._inside.pcie_queues,
        )
        return WiredHost(shape, ports)

    def _nvlink_rate(self, gpus: range, nvlink: Mapping[int, Sequence[tuple[int, float]]]) -> float:
        """bit/s of a GPU's NVLinks, those to several NVSwitches added up."""
        rates = {sum(rate for _, rate in nvlink.get(gpu, ())) for gpu in gpus}
        joined = {frozenset(switch for switch, _ in nvlink.get(gpu, ())) for gpu in gpus}
        if len(rates) > 1 or len(joined) > 1:
            raise self._error(None, f"GPUs {gpus[0]} to {gpus[-1]} have different NVLinks", "the same for a server")
        return rates.pop() or NVLINK_RATE
