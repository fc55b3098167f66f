"""The page of a watched run: the fabric view of the report, fed by the run's events instead of its files. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.experiment.experiment import Experiment
from testbed.report.page.assemble import page
from testbed.report.page.fabric_view import fabric_view


def watch_page(experiments: Sequence[Experiment]) -> str:
    """Return the page for runs of ``experiments``, which differ in their schedulers only."""
    first = experiments[0]
    document = {
        "scenario": first.name,
        "schedulers": [experiment.scheduler.label for experiment in experiments],
        "fabric": fabric_view(first.fabric),
    }
    title = f"{first.name}: watching the run"
    return page(
        title, "Waiting for the run", document, "live_page.js", libraries=["cytoscape.min.js"], asks_server=True
    )
