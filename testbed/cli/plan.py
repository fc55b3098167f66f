"""``testbed plan``: a dry run: what a run would do and how long it would take; needs no root."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from testbed.cli.arguments import add_changes, add_datapath, add_engine, add_scenario
from testbed.errors import EXIT_OK
from testbed.metrics.catalogue import LEVEL_NOTE
from testbed.metrics.formats import percent, seconds, time_text
from topologies.units import format_rate, format_work

if TYPE_CHECKING:
    from rich.table import Table

    from topologies.fabric import Fabric

NAME = "plan"
HELP = "show what a run would do: fabric, jobs, decisions, scale, estimated time"

Document = Mapping[str, Any]


def _dot(fabric: Fabric) -> str:
    from topologies.formats.drawings import graphviz

    return graphviz(fabric)


def _node_link(fabric: Fabric) -> str:
    from topologies.formats.node_link import written

    return json.dumps(written(fabric), indent=1) + "\n"


def _containerlab(fabric: Fabric) -> str:
    import yaml

    from topologies.formats.drawings import containerlab

    return str(yaml.safe_dump(containerlab(fabric), sort_keys=False))


EXPORTS: Final[Mapping[str, tuple[str, Callable[[Fabric], str]]]] = {
    "dot": ("print the fabric in the DOT language of Graphviz instead", _dot),
    "node-link": ("print the fabric as node-link JSON of networkx instead", _node_link),
    "containerlab": ("print the fabric as a topology of containerlab instead", _containerlab),
}
"""Option -> its help, and what it prints of the fabric."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the scenario and what can be changed about it."""
    add_scenario(parser)
    add_engine(parser)
    add_changes(parser)
    add_datapath(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")
    for name, (text, _) in EXPORTS.items():
        shown.add_argument(f"--{name}", dest="export", action="store_const", const=name, help=text)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; raises :class:`testbed.errors.TestbedError` if there is none."""
    from testbed.api import plan
    from testbed.report.terminal import say, show

    if arguments.export:
        print(EXPORTS[arguments.export][1](_fabric(arguments)), end="")
        return EXIT_OK
    document = plan(
        arguments.scenario,
        engine=arguments.engine,
        schedulers=arguments.scheduler,
        overrides=arguments.overrides,
        seed=arguments.seed,
        datapath=arguments.datapath,
    )
    if arguments.json:
        print(json.dumps(document, indent=1))
        return EXIT_OK
    say([_headline(document)])
    managed = document.get("manager")
    show([_job_table(document), *([] if managed else [_decision_table(document)])])
    if managed:
        parts = ", ".join(f"{point} {name}" for point, name in managed.items())
        say([f"jobs are placed as they come ({parts}); above, each on GPUs that lie together"])
    say(_closing_lines(document))
    return EXIT_OK


def _fabric(arguments: argparse.Namespace) -> Fabric:
    from testbed.scenario import build_fabric, load

    return build_fabric(load(arguments.scenario, arguments.overrides))


def _headline(document: Document) -> str:
    fabric = document["fabric"]
    switches = ", ".join(f"{count} {tier}" for tier, count in fabric["switches"].items() if count)
    cables = ", ".join(f"{count} {kind}" for kind, count in fabric["cables"].items())
    ports = "" if fabric["ports"] == fabric["nics"] else f" with {fabric['ports']} ports"
    return (
        f"{document['scenario']}, seed {document['seed']}: {fabric['hosts']} hosts, {fabric['gpus']} GPUs, "
        f"{fabric['nics']} NICs{ports}; switches: {switches}; cables: {cables}"
    )


_JOB_NOTES: Final = {
    "t_j s": "time to send what an iteration sends, over the job's busiest link",
    "intensity": "FLOPs of an iteration / t_j",
}
"""Columns of the table of jobs -> their meaning."""


def _job_table(document: Document) -> Table:
    from testbed.report.fitting import new_table

    right = ("GPUs", "hosts", "flows", "start s", "iteration s", "GPU util %", "t_j s", "intensity")
    optional = ("start s", "t_j s", "hosts", "flows")
    table = new_table(
        "jobs, each alone on the fabric", left=("job", "model"), right=right, optional=optional, notes=_JOB_NOTES
    )
    for job in document["jobs"]:
        table.add_row(
            job["name"],
            job["model"],
            *(str(job[key]) for key in ("gpus", "hosts", "flows")),
            seconds(job["start_s"], 1),
            seconds(job["iteration_s"]),
            percent(job["gpu_utilization"]),
            seconds(job["communication_s"]),
            f"{format_work(job['intensity'])}/s",
        )
    return table


def _decision_table(document: Document) -> Table:
    """A row per scheduler and job: its level, and its iteration alone on the decided paths."""
    from testbed.report.fitting import new_table

    right = ("level", "iteration s", "GPU util %")
    title, notes = "decisions (each job alone on its decided paths)", {"level": LEVEL_NOTE}
    table = new_table(title, left=("scheduler", "job"), right=right, notes=notes)
    for entry in document["schedulers"]:
        for place, job in enumerate(entry["jobs"]):
            level = "-" if job["level"] is None else str(job["level"])
            name = entry["scheduler"] if place == 0 else ""
            table.add_row(name, job["name"], level, seconds(job["iteration_s"]), percent(job["gpu_utilization"]))
        table.add_section()
    return table


def _closing_lines(document: Document) -> list[str]:
    decided = () if document.get("manager") else document["schedulers"]
    lines = [f"{entry['scheduler']}: {_sharing(entry)}" for entry in decided]
    if document["nothing_to_schedule"]:
        lines.append(document["nothing_to_schedule"])
    lines += document["left_out_of_files"]
    if document["engine"] != "emulation":
        lines += [document["slow_flow_engine"]] if document["slow_flow_engine"] else []
        times = ", ".join(f"{entry['scheduler']} {time_text(entry['simulated_s'])}" for entry in document["schedulers"])
        return [*lines, f"{_what_it_does(document)}; simulated time: {times}", *_simulation_lines(document)]
    return lines + _emulation_lines(document)


def _simulation_lines(document: Document) -> list[str]:
    """How long a simulation will take, about."""
    if document["estimated_s"] is None:
        return []
    times = ", ".join(
        f"{entry['scheduler']} {entry['estimated_s']:.0f} s for {entry['packet_hops'] / 1e6:.3g} million packet hops"
        for entry in document["schedulers"]
    )
    return [f"estimated CPU time: {document['estimated_s']:.0f} s ({times}); contention makes it longer"]


def _what_it_does(document: Document) -> str:
    scale = document["scale"]
    if scale is None:
        return "the flow engine computes rates and sends no packets"
    if document["network"] != "window":
        rates = "at line rate" if scale["bandwidth"] == 1.0 else f"with rates / {scale['bandwidth']:g}"
        return f"the simulation has the packets of {document['network']} {rates}"
    return (
        f"the simulation has the packets of an emulation with rates / {scale['bandwidth']:g}, "
        f"times x {scale['time']:g}, MTU {scale['mtu']}"
    )


def _emulation_lines(document: Document) -> list[str]:
    scale = document["scale"]
    rates = ", ".join(
        f"{kind} {' and '.join(format_rate(rate) for rate in rates)}" for kind, rates in scale["link_rates_bps"].items()
    )
    lines = _datapath_lines(document["datapaths"])
    lines += [document["not_built"]] if document["not_built"] else []
    decides = "an estimate, the run measures this machine first and decides" if document["rehearsed"] else "as given"
    lines.append(
        f"scale ({decides}): rates / {scale['bandwidth']:g}, times x {scale['time']:g}, MTU {scale['mtu']}; "
        f"emulated: {rates}"
    )
    if scale["estimated_load_share"] > 1.0 and not document["rehearsed"]:
        lines.append(
            f"warning: with all ports sending at once the load is {scale['estimated_load_share']:.1f} times what two "
            "cores are estimated to carry, the verdict may not be ok (scale: auto measures that)"
        )
    if scale["coarse"]:
        lines.append(f"coarse: {scale['coarse']}; dilation {scale['dilation_wanted']:g} would give them")
    times = ", ".join(f"{entry['scheduler']} {entry['estimated_s']:.0f} s" for entry in document["schedulers"])
    lines.append(f"estimated time: {document['estimated_s']:.0f} s ({times}); contention makes it longer")
    return lines


def _datapath_lines(datapaths: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each datapath that an emulation here would take, with the schedulers if they differ."""
    together: dict[str, list[str]] = {}
    for scheduler, choice in datapaths.items():
        lacks = f"; this machine lacks it: {choice['missing']}" if choice["missing"] else ""
        together.setdefault(f"{choice['datapath']} ({choice['reason']}{lacks})", []).append(scheduler)
    if len(together) == 1:
        return [f"datapath: {said}" for said in together]
    return [f"datapath of {', '.join(names)}: {said}" for said, names in together.items()]


def _sharing(entry: Document) -> str:
    if entry["hashed_flows"]:
        return f"the switches choose the paths of {entry['hashed_flows']} flows"
    if not entry["links_by_flows"]:
        return "no two flows share a link above the ToRs"
    shared = ", ".join(f"{links} with {count}" for count, links in entry["links_by_flows"].items())
    worst = entry["worst_link"]
    jobs = ", ".join(worst["jobs"])
    return f"shared links by number of flows: {shared}; worst: {worst['link']}, {worst['flows']} flows of {jobs}"
