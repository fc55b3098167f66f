"""``testbed doctor``: the capabilities of this machine, and the consequences of missing ones."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed.errors import EXIT_CANNOT, EXIT_OK, CannotRunError, RunFailedError
from testbed.experiment.scale_search import ScaleSearch
from testbed.machine.capabilities import Capability, datapaths_here, findings
from testbed.machine.datapaths import DatapathChoice, choose

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

NAME: Final = "doctor"
EXAMPLE: Final = "hello"
HELP: Final = "say what this machine has, what it lacks and what follows; changes nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--no-rehearsal", action="store_true", help="do not try out what the machine carries")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; status 3 where this machine, or this user, cannot run emulations."""
    found = findings()
    stopper = next((finding for finding in found if finding.blocking), None)
    missing = datapaths_here()
    default = choose(None, missing, switches_hash=False)
    wanted = not stopper and not arguments.no_rehearsal
    if arguments.json:
        print(json.dumps(_document(found, stopper, default, _rehearse() if wanted else None), indent=2))
        return EXIT_CANNOT if stopper else EXIT_OK
    from testbed.report.terminal import say, show

    show([_table(found)])
    say(
        [
            stopper.remedy
            if stopper
            else f"This machine can run emulations. Datapath {default.datapath}: {default.reason}."
        ]
    )
    if wanted:
        say([rehearsal_line(_rehearse())])
    return EXIT_CANNOT if stopper else EXIT_OK


def _rehearse() -> Mapping[str, Any]:
    """Rehearse ``hello``, in some ten seconds; return the evidence, or under ``problem`` why there is none."""
    from testbed.api import prepare
    from testbed.engines.emulation.engine import EmulationEngine
    from testbed.engines.flow.demand import demands_of

    print(f"trying out what this machine carries, with the messages of '{EXAMPLE}' ...", file=sys.stderr, flush=True)
    experiments = prepare(EXAMPLE).experiments
    search = ScaleSearch(demands_of(experiments), only=True)
    with tempfile.TemporaryDirectory(prefix="testbed-") as folder:
        try:
            return EmulationEngine().run(experiments[0], Path(folder), lambda message: None, search).environment
        except (CannotRunError, RunFailedError) as error:
            return {"problem": str(error)}


def rehearsal_line(environment: Mapping[str, Any]) -> str:
    """What the rehearsal found, or why there was none."""
    if "problem" in environment:
        return f"No rehearsal of '{EXAMPLE}': {environment['problem']}"
    evidence, scale = environment["rehearsal"], environment["scale"]
    last = evidence["steps"][-1]
    line = (
        f"Rehearsal of '{EXAMPLE}': {last['busy']:.0%} of the CPU busy with rates / {last['bandwidth']:g}; "
        f"a run would have rates / {scale['bandwidth']:g}, times x {scale['time']:g}."
    )
    return f"{line} {evidence['disturbed']}".rstrip()


def _document(
    found: Sequence[Capability],
    stopper: Capability | None,
    default: DatapathChoice,
    rehearsed: Mapping[str, Any] | None,
) -> dict[str, object]:
    return {
        "schema_version": 2,
        "can_emulate": stopper is None,
        "reason": stopper.remedy if stopper else "",
        "datapath": default.datapath,
        "datapath_reason": default.reason,
        "rehearsal": rehearsed,
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
