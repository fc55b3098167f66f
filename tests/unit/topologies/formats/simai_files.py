"""Topologies in SimAI's format, written from the rules of its templates, for tests."""

from __future__ import annotations

from collections.abc import Iterator


def topology(
    servers: int, gpus: int, per_segment: int, planes: int = 1, *, rails: bool, sides: int = 1, aggregations: int = 2
) -> str:
    """Return a file: servers in segments, ToRs per rail or per segment, ``sides`` ToRs for each, one NVSwitch each.

    ToRs of the first side come before those of the second; in two planes each side has aggregation of its own.
    """
    segments = -(-servers // per_segment)
    groups = gpus if rails else 1
    first_switch = servers * gpus
    tors = [first_switch + servers + number for number in range(segments * groups * sides)]
    above = [tors[-1] + 1 + number for number in range(aggregations)]
    lines = [
        *_host_lines(servers, gpus, per_segment, tors, groups if rails else 0, sides),
        *_upper_lines(tors, above, sides, planes),
    ]
    switches = range(first_switch, above[-1] + 1)
    header = f"{above[-1] + 1} {gpus} {servers} {len(tors) + len(above)} {len(lines)} H100"
    return "\n".join([header, " ".join(map(str, switches)), *lines]) + "\n"


def _host_lines(servers: int, gpus: int, per_segment: int, tors: list[int], rails: int, sides: int) -> Iterator[str]:
    per_side = len(tors) // sides
    for gpu in range(servers * gpus):
        server = gpu // gpus
        yield f"{gpu} {servers * gpus + server} 2880Gbps 0.000025ms 0"
        group = server // per_segment * (rails or 1) + (gpu % gpus if rails else 0)
        for side in range(sides):
            yield f"{gpu} {tors[side * per_side + group]} 200Gbps 0.0005ms 0"


def _upper_lines(tors: list[int], above: list[int], sides: int, planes: int) -> Iterator[str]:
    per_side, per_plane = len(tors) // sides, len(above) // planes
    for number, tor in enumerate(tors):
        plane = number // per_side if planes > 1 else 0
        for upper in above[plane * per_plane : (plane + 1) * per_plane]:
            yield f"{tor} {upper} 400Gbps 0.0005ms 0"
