"""A scheduler that chooses paths, in a package of its own: each flow takes the path that has least to carry."""

from collections import defaultdict
from collections.abc import Mapping

from testbed.plugins import ClusterView, Decision, Event, Flow, Path, Scheduler


class LeastLoaded(Scheduler):
    """Large flows choose first. ``keep``: a flow that runs stays on its path as long as all its links work."""

    name = "least-loaded"
    summary = "each flow on the path whose busiest link has the fewest bytes"
    decides = ("paths",)
    source = "an example"

    def __init__(self, *, keep: bool = False) -> None:
        if not isinstance(keep, bool):
            raise ValueError(f"option 'keep' of least-loaded must be true or false, not '{keep}'")
        self._keep = keep

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path for each flow of each running job."""
        paths: dict[str, Path] = {}
        load: dict[str, float] = defaultdict(float)  # link -> seconds that it needs for the bytes placed on it so far
        for flow in sorted(view.flows, key=lambda flow: -flow.bytes):
            path = self._kept(view, flow) or self._best(view, flow, load)
            for link in path:
                load[link] += _seconds(view, flow, link)
            paths[flow.id] = path
        return Decision(paths=paths)

    def _kept(self, view: ClusterView, flow: Flow) -> Path | None:
        """The path that the flow has now, if it may keep it; a failed link is not in the fabric any more."""
        path = view.decision.paths.get(flow.id)
        if self._keep and path is not None and all(link in view.fabric.links for link in path):
            return path
        return None

    def _best(self, view: ClusterView, flow: Flow, load: Mapping[str, float]) -> Path:
        """The candidate whose busiest link needs the fewest seconds with this flow on it; of equal ones the first."""

        def busiest(path: Path) -> float:
            return max(load.get(link, 0.0) + _seconds(view, flow, link) for link in path)

        return min(view.fabric.candidate_paths(flow.source, flow.target), key=busiest)


def _seconds(view: ClusterView, flow: Flow, link: str) -> float:
    """How long ``link`` takes for the bytes that ``flow`` sends in an iteration."""
    return 8 * flow.bytes / view.fabric.links[link].capacity
