"""``testbed doctor``: the capabilities of this machine, and the consequences of missing ones."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.errors import EXIT_CANNOT, EXIT_OK, RunFailedError
from testbed.fidelity.interference import MIN_IDLE_CPU
from testbed.machine.budget import Budget
from testbed.machine.budget_cache import current_budget, store
from testbed.machine.capabilities import Capability, datapaths_here, findings
from testbed.machine.datapaths import DatapathChoice, choose
from topologies.datapath import Datapath
from topologies.shaping import TCP_IP_HEADER
from topologies.units import format_rate

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

NAME: Final = "doctor"
EXAMPLE_NICS: Final = 48
EXAMPLE_SWITCHES: Final = 3
HELP: Final = "say what this machine has, what it lacks and what follows; changes nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    measure = "measure what each datapath forwards, in under 6 minutes each, and keep it for 'scale: auto'"
    parser.add_argument("--measure", action="store_true", help=measure)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; status 3 where this machine, or this user, cannot run emulations."""
    found = findings()
    stopper = next((finding for finding in found if finding.blocking), None)
    missing = datapaths_here()
    default = choose(None, missing, switches_hash=False)
    here = [name for name, why in missing.items() if not why]
    kept = _measure(here) if arguments.measure and stopper is None else None
    budgets = {name: current_budget(name) for name in here or [default.datapath]}
    if arguments.json:
        print(json.dumps(_document(found, stopper, default, budgets), indent=2))
        return EXIT_CANNOT if stopper else EXIT_OK
    from testbed.report.terminal import say, show

    show([_table(found)])
    if kept is not None:
        show(_budget_table(name, budget) for name, budget in budgets.items())
        say([f"Kept in {kept}."])
    can = f"This machine can run emulations. Datapath {default.datapath}: {default.reason}."
    line = f"{can} {budget_line(budgets[default.datapath])}"
    say([stopper.remedy if stopper else line])
    return EXIT_CANNOT if stopper else EXIT_OK


def budget_line(budget: Budget) -> str:
    """The forwarding capacity of the machine, from the budget that ``scale: auto`` uses."""
    mtu = budget.mtus[0]
    hops = budget.at(mtu, EXAMPLE_NICS)
    rate = hops / EXAMPLE_NICS / EXAMPLE_SWITCHES * 8 * (mtu - TCP_IP_HEADER)
    return (
        f"Budget ({budget.source}): {hops:,.0f} packets x switches per second, "
        f"such as {EXAMPLE_NICS} NICs at {format_rate(rate)} over {EXAMPLE_SWITCHES} switches."
    )


def _measure(datapaths: Sequence[Datapath]) -> Path:
    """Measure and store the budget of each of ``datapaths``, at least one; return the file."""
    from testbed.engines.emulation.forwarding_budget import measure_budget
    from testbed.engines.registry import create_engine

    for datapath in datapaths:
        budget = measure_budget(create_engine("emulation"), _show, datapath)
        try:
            kept = store(budget, datapath)
        except OSError as error:
            raise RunFailedError(f"the measured budget cannot be kept: {error}") from error
    return kept


def _show(what: str, done: float) -> None:
    print(f"measuring: {what} ({done:.0%} done)", file=sys.stderr, flush=True)


def _budget_table(datapath: Datapath, budget: Budget) -> Table:
    """Measured points, and the payload rate per port."""
    from testbed.report.fitting import new_table

    right = ("ports", "switches", "channels", "MTU", "packets x switches/s", "rate per port", "others' CPU")
    title = f"{datapath}: forwarded with {MIN_IDLE_CPU:.0%} of the CPU idle, {budget.source}"
    table = new_table(title, left=(), right=right)
    for point in budget.points:
        rate = point.packet_hops_per_s / point.ports / point.switches * 8 * (point.mtu - TCP_IP_HEADER)
        table.add_row(
            str(point.ports),
            str(point.switches),
            str(point.channels),
            str(point.mtu),
            f"{point.packet_hops_per_s:,.0f}",
            format_rate(rate),
            f"{point.others:.1%}",
        )
    return table


def _document(
    found: Sequence[Capability],
    stopper: Capability | None,
    default: DatapathChoice,
    budgets: Mapping[Datapath, Budget],
) -> dict[str, object]:
    budget = budgets[default.datapath]
    return {
        "schema_version": 1,
        "can_emulate": stopper is None,
        "reason": stopper.remedy if stopper else "",
        "datapath": default.datapath,
        "datapath_reason": default.reason,
        "budget_packet_hops_per_s": budget.at(budget.mtus[0], EXAMPLE_NICS),
        "budget": budget.document(),
        "budgets": {name: each.document() for name, each in budgets.items()},
        "findings": [{key: value for key, value in asdict(finding).items() if key != "remedy"} for finding in found],
    }


def _table(found: Sequence[Capability]) -> Table:
    from testbed.report.plain_text import PlainTable

    table = PlainTable(box=None, pad_edge=False)
    for heading in ("", "what", "found", "consequence"):
        table.add_column(heading)
    for finding in found:
        table.add_row(_mark(finding), finding.name, finding.detail, finding.consequence)
    return table


def _mark(finding: Capability) -> Text:
    from rich.text import Text

    if finding.present is None:
        return Text("unknown")
    if finding.present:
        return Text("has", style="green")
    return Text("lacks", style="red" if finding.required else "yellow")
