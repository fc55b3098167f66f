"""Chakra execution traces (``.et``, mlcommons/chakra): the graph of each rank's operators, as phases of an iteration.

The ranks of a data-parallel program do the same, so an iteration is that of the first rank; where others move other
bytes, the import says so. What GPUs compute counts, not the operators of the CPU that launch it. Collectives that only
launch others have no size and do not count either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from topologies.limits import WORKLOAD_BYTES, WORKLOAD_ROWS, LimitError, read_bytes
from workloads.imported import chakra_wire as wire
from workloads.imported.chakra_wire import ChakraNode, WireError
from workloads.imported.errors import WorkloadFileError
from workloads.imported.graph import Operator, length_s, ordered, stretches
from workloads.imported.graph import Stretch as Part
from workloads.imported.workload import (
    Collective,
    CollectiveKind,
    Coverage,
    GroupKind,
    ImportedWorkload,
    Parallelism,
    Stretch,
)

FORM: Final = "chakra"
EXPECTED: Final = "a Chakra execution trace"
KINDS: Final[Mapping[int, CollectiveKind]] = {
    0: "allreduce",
    2: "all-gather",
    5: "broadcast",
    6: "alltoall",
    7: "reduce-scatter",
    8: "reduce-scatter",
}
NAMES: Final = (
    *("ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL"),
    *("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"),
)
MOST_RANKS: Final = 65536
_RANK: Final = re.compile(r"(\d+)\.et$")


def read(path: Path, gpus: int | None = None, group: GroupKind | None = None) -> ImportedWorkload:
    """Return the iteration of the traces in a folder, one file per rank, or of one file for all ranks.

    ``gpus``: as many as there are files; needed where there is one file. ``group``: the ranks that take part in
    collectives of a process group. Raises :class:`WorkloadFileError`.
    """
    files = files_of(path)
    graphs = [read_graph(file) for file in files]
    if len(files) == 1 and gpus is None:
        raise WorkloadFileError(str(path), None, "one rank only", "gpus, the number of GPUs of the job")
    if len(files) > 1 and gpus not in (None, len(files)):
        raise WorkloadFileError(str(path), None, f"{len(files)} ranks for {gpus} GPUs", "as many GPUs as ranks")
    parallelism = Parallelism(gpus or len(files))
    return _imported(str(path), files[0], graphs, parallelism, group)


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the traces of a folder in the order of their ranks, or the file itself."""
    if not path.is_dir():
        return (path,)
    found = sorted(path.glob("*.et"), key=lambda file: (_rank(file), file.name))
    if not found or len(found) > MOST_RANKS:
        raise WorkloadFileError(str(path), None, f"{len(found)} files *.et", f"1 to {MOST_RANKS}, one per rank")
    return tuple(found)


def _rank(file: Path) -> int:
    match = _RANK.search(file.name)
    return int(match.group(1)) if match and len(match.group(1)) < 9 else 0


def read_graph(path: Path) -> tuple[ChakraNode, ...]:
    """Return the nodes of a trace; raises :class:`WorkloadFileError` naming the node that is wrong."""
    try:
        data = read_bytes(path, WORKLOAD_BYTES)
    except LimitError as error:
        raise WorkloadFileError(str(path), None, str(error), f"a file of at most {WORKLOAD_BYTES} bytes") from None
    except OSError as error:
        raise WorkloadFileError(str(path), None, f"cannot be read ({error.strerror})", EXPECTED) from None
    nodes: list[ChakraNode] = []
    what = "the metadata"
    try:
        for number, message in enumerate(wire.read_messages(data)):
            what = f"node {number}" if number else what
            if number:
                nodes.append(wire.read_node(message))
            else:
                wire.read_version(message)
            if len(nodes) > WORKLOAD_ROWS:
                raise WorkloadFileError(str(path), None, f"more than {WORKLOAD_ROWS} nodes", "fewer")
    except WireError as error:
        raise WorkloadFileError(str(path), None, f"damaged at {what}: {error}", EXPECTED) from None
    if not nodes:
        raise WorkloadFileError(str(path), None, "no node", EXPECTED)
    twice = next((each for each, count in Counter(node.id for node in nodes).items() if count > 1), None)
    if twice is not None:
        raise WorkloadFileError(str(path), None, f"two nodes have the id {twice}", "an id for each")
    return tuple(nodes)


def _imported(
    source: str, file: Path, graphs: Sequence[Sequence[ChakraNode]], parallelism: Parallelism, group: GroupKind | None
) -> ImportedWorkload:
    nodes = graphs[0]
    found = {
        node.id: collective
        for node in nodes
        if (collective := _collective(str(file), node, group, parallelism)) is not None
    }
    operators = [_operator(node, node.id in found) for node in nodes]
    in_order, dropped = ordered(operators)
    parts = stretches(in_order)
    taken = {operator.id: operator.seconds for operator in operators}
    notes = [f"{len(nodes)} nodes, {_count(nodes, wire.COLLECTIVE)} of them collectives, {len(found)} with a size"]
    notes.append(_difference(length_s(in_order), sequence_s(parts, taken)))
    left_out = [*_left_out(nodes), *_missing(nodes), *_other_ranks(graphs)]
    coverage = _coverage(nodes, found)
    if coverage.left_out and not coverage.kept:
        what = f"none of {coverage.left_out} nodes that communicate can be used ({'; '.join(left_out)[:160]})"
        raise WorkloadFileError(str(file), None, what, "collectives with comm_type and comm_size")
    if dropped:
        left_out.append(
            f"{dropped} dependencies that close circles: the operator that comes first in the file goes first"
        )
    return ImportedWorkload(
        FORM,
        source,
        parallelism,
        tuple(_stretch(part, found) for part in parts),
        tuple(left_out),
        tuple(notes),
        coverage,
    )


def _coverage(nodes: Sequence[ChakraNode], found: Mapping[int, Collective]) -> Coverage:
    """Collectives that only launch others count neither as kept nor as left out."""
    kept = [node for node in nodes if node.id in found]
    missed = [
        node
        for node in nodes
        if node.id not in found
        and (
            node.kind in (wire.SEND, wire.RECEIVE)
            or (node.kind == wire.COLLECTIVE and (_has_size(node) or not (_on_cpu(node) and found)))
        )
    ]
    seconds = [sum(node.seconds for node in those) for those in (kept, missed)]
    return Coverage(len(kept), len(missed), *seconds)


def _has_size(node: ChakraNode) -> bool:
    return bool(node.attributes.get("comm_size", 0))


def _missing(nodes: Sequence[ChakraNode]) -> list[str]:
    """A line if nodes depend on others that the file does not have."""
    known = {node.id for node in nodes}
    missing = [each for node in nodes for each in node.after if each not in known]
    if not missing:
        return []
    return [f"{len(missing)} dependencies on {len(set(missing))} nodes that are not in the file: they do not count"]


def _count(nodes: Iterable[ChakraNode], kind: int) -> int:
    return sum(node.kind == kind for node in nodes)


def _difference(graph_s: float, sequence: float) -> str:
    """By how much the phases take longer or shorter than the graph, with the recorded durations."""
    return (
        f"with the recorded durations the graph takes {graph_s:.6g} s, the phases {sequence:.6g} s "
        f"({sequence - graph_s:+.6g} s)"
    )


def sequence_s(parts: Iterable[Part], taken: Mapping[int, float]) -> float:
    """Return the seconds of the phases, each collective taking as long as ``taken`` says."""
    now = behind = 0.0
    for part in parts:
        ready = now + part.before_s
        sends = 0.0 if part.communication is None else taken[part.communication]
        computed = ready + part.beside_s
        if part.background:
            now, behind = computed, max(behind, ready + sends)
        else:
            now = max(computed, ready + sends)
    return max(now, behind)


def _on_cpu(node: ChakraNode) -> bool:
    return bool(node.attributes.get("is_cpu_op", False))


def _operator(node: ChakraNode, communicates: bool) -> Operator:
    counts = communicates or (node.kind == wire.COMPUTE and not _on_cpu(node))
    return Operator(node.id, node.seconds if counts else 0.0, communicates, node.after)


def _collective(file: str, node: ChakraNode, group: GroupKind | None, parallelism: Parallelism) -> Collective | None:
    size, kind = node.attributes.get("comm_size", 0), node.attributes.get("comm_type", 0)
    if node.kind != wire.COLLECTIVE or not isinstance(size, int) or size == 0:
        return None
    if not isinstance(kind, int) or kind not in KINDS:
        return None
    if size < 0:
        raise WorkloadFileError(file, None, f"node {node.id} moves {size} bytes", "0 or more")
    ranks: GroupKind = "all"
    named = node.attributes.get("pg_name", node.attributes.get("comm_group", ""))
    if named not in ("", 0, "0"):
        if group is None:
            what = f"node {node.id} is a collective of process group {named!r}"
            raise WorkloadFileError(file, None, what, "group, the ranks that take part")
        ranks = group
    if parallelism.size(ranks) < 2:
        raise WorkloadFileError(file, None, f"node {node.id} is a collective of one rank", "group, or more GPUs")
    return Collective(KINDS[kind], ranks, float(size))


def _stretch(part: Part, found: Mapping[int, Collective]) -> Stretch:
    if part.communication is None:
        return Stretch(part.before_s + part.beside_s)
    each = found[part.communication]
    collective = Collective(each.kind, each.group, each.bytes, part.background)
    return Stretch(part.before_s + part.beside_s, collective, part.beside_s)


def _left_out(nodes: Sequence[ChakraNode]) -> list[str]:
    found: list[str] = []
    cpu = [node for node in nodes if node.kind == wire.COMPUTE and _on_cpu(node)]
    if cpu:
        found.append(f"{len(cpu)} operators of the CPU: it launches what GPUs compute")
    launches = [node for node in nodes if node.kind == wire.COLLECTIVE and not node.attributes.get("comm_size", 0)]
    if launches:
        found.append(f"{len(launches)} collectives without a size: they launch others")
    pairs = [node for node in nodes if node.kind in (wire.SEND, wire.RECEIVE)]
    if pairs:
        size = sum(each for node in pairs if isinstance(each := node.attributes.get("comm_size", 0), int))
        found.append(f"{len(pairs)} sends and receives of single ranks, {size} bytes together: no collective")
    memory = [node for node in nodes if node.kind in (wire.MEMORY_LOAD, wire.MEMORY_STORE)]
    if memory:
        found.append(f"{len(memory)} loads and stores, {sum(node.seconds for node in memory):g} s together")
    for kind, name in enumerate(NAMES):
        odd = [node for node in nodes if node.kind == wire.COLLECTIVE and node.attributes.get("comm_type", 0) == kind]
        size = sum(each for node in odd if isinstance(each := node.attributes.get("comm_size", 0), int))
        if kind not in KINDS and odd and size:
            found.append(f"{len(odd)} collectives {name}, {size} bytes together: not modelled")
    return found


def _other_ranks(graphs: Sequence[Sequence[ChakraNode]]) -> list[str]:
    """A line if ranks move other bytes than the first."""
    moved = [_moved(nodes) for nodes in graphs]
    others = sum(each != moved[0] for each in moved)
    return [f"what {others} of {len(graphs)} ranks do otherwise: all do what the first does"] if others else []


def _moved(nodes: Iterable[ChakraNode]) -> Counter[object]:
    found = Counter[object]()
    for node in nodes:
        size = node.attributes.get("comm_size", 0)
        if node.kind == wire.COLLECTIVE and isinstance(size, int):
            found[node.attributes.get("comm_type", 0)] += size
    return found
