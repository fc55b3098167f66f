"""Communication steps as coflows on a big switch: only the two host links of a flow count.

A coflow is all flows of one communication step of one job. The ports of the big switch are the
directions of host cables: the link from the source port to its ToR and the one from the target's ToR
to the target port. Flows between the same two ports add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controller.decision import ClusterView, Step
from topologies.fabric import Fabric
from workloads.analysis import bytes_by_link
from workloads.job import Job

HostLinks = Mapping[str, tuple[str, str]]
"""Flow id -> its host links: uplink of the source, downlink of the target."""


def host_links(job: Job, fabric: Fabric) -> dict[str, tuple[str, str]]:
    """Return flow id -> the two host links that the flow takes, for the flows of ``job``."""
    return {flow.id: (fabric.uplink(flow.source).name, fabric.uplink(flow.target).reverse) for flow in job.flows}


def seconds_by_link(sizes: Iterable[tuple[str, float]], links: HostLinks, fabric: Fabric) -> dict[str, float]:
    """Return host link -> seconds at its capacity for (flow id, bytes) pairs; links without bytes are left out."""
    load = bytes_by_link(sizes, links)
    return {link: 8 * size / fabric.links[link].capacity for link, size in load.items() if size > 0}


def iteration_demands(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, dict[str, float]]:
    """Return job -> host link -> seconds per iteration: every job as one coflow of all that an iteration sends."""
    return {
        job.name: seconds_by_link(((flow.id, flow.bytes) for flow in job.flows), host_links(job, fabric), fabric)
        for job in jobs
    }


class StepBook:
    """The steps in progress with the host links of their flows, which are looked up once per job.

    An entry is used only for the same job and fabric objects that it was computed from, so it cannot go stale.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Job, Fabric, HostLinks]] = {}

    def under_way(self, view: ClusterView) -> list[tuple[Step, HostLinks]]:
        """Return the steps with bytes left, the earliest first; those that began together in order of arrival."""
        if not self._known.keys() <= view.jobs.keys():
            self._known = {name: known for name, known in self._known.items() if name in view.jobs}
        steps = (view.steps[name] for name in view.jobs if name in view.steps)
        left = sorted((step for step in steps if any(step.remaining.values())), key=lambda step: step.started_s)
        return [(step, self._links(view.jobs[step.job], view.fabric)) for step in left]

    def demands(self, view: ClusterView) -> dict[str, dict[str, float]]:
        """Return job -> host link -> seconds still to be sent, in the order of :meth:`under_way`."""
        return {
            step.job: seconds_by_link(step.remaining.items(), links, view.fabric)
            for step, links in self.under_way(view)
        }

    def _links(self, job: Job, fabric: Fabric) -> HostLinks:
        known = self._known.get(job.name)
        if known is None or known[0] is not job or known[1] is not fabric:
            known = self._known[job.name] = (job, fabric, host_links(job, fabric))
        return known[2]
