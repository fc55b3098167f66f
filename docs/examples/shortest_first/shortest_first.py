"""A scheduler in a package of its own: the job with the fewest bytes per iteration goes first."""

from testbed.plugins import ClusterView, Decision, Event, Scheduler


class ShortestFirst(Scheduler):
    """Levels by rank. ``reverse``: the job with the most bytes first."""

    name = "shortest-first"
    summary = "the job with the fewest bytes per iteration first"
    decides = ("levels",)
    source = "an example"

    def __init__(self, *, reverse: bool = False) -> None:
        if not isinstance(reverse, bool):
            raise ValueError(f"option 'reverse' of shortest-first must be true or false, not '{reverse}'")
        self._sign = -1 if reverse else 1

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a level per job: its rank, as long as there are levels."""
        sizes = {name: sum(flow.bytes for flow in job.flows) for name, job in view.jobs.items()}
        order = sorted(sizes, key=lambda name: (self._sign * sizes[name], name))
        return Decision(levels={name: min(rank, view.level_count - 1) for rank, name in enumerate(order)})
