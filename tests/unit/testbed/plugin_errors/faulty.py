"""A package whose plug-ins are all wrong, each in its own way; ``expected.txt`` has what is said of them."""

from typing import Annotated

from testbed.plugins import (
    STEP_EVENTS,
    ByteLevels,
    ClusterView,
    Count,
    Decision,
    Event,
    Placement,
    PlacementRequest,
    Placer,
    Policy,
    Queue,
    Scheduler,
    Waiting,
)


class Wrong(Scheduler):
    name = "wrong"
    summary = "decides what cannot be carried out"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        flow = view.flows[0]
        path = view.fabric.candidate_paths(flow.source, flow.target)[0]
        return self.of(view, flow.id, path)


class Raises(Wrong):
    def of(self, view, flow, path):
        return view.jobs["nobody"]


class RaisesInTheTestbed(Wrong):
    def of(self, view, flow, path):
        return view.fabric.candidate_paths("h0n0p0", "nowhere")


class Leaves(Wrong):
    def of(self, view, flow, path):
        raise SystemExit("enough")


class TakesTooLittle(Scheduler):
    name = "takes-too-little"

    def decide(self, view):
        return Decision()


class ReturnsNothing(Wrong):
    def of(self, view, flow, path):
        Decision()


class UnknownLink(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={flow: (path[0], "tor0->agg9", *path[2:])})


class ListOfLinks(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={flow: list(path)})


class DoesNotConnect(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={flow: (path[0], *path[2:])})


class BeginsElsewhere(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={flow: path[1:]})


class EndsEarly(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={flow: path[:-1]})


class UnknownFlow(Wrong):
    def of(self, view, flow, path):
        return Decision(paths={"big": path})


class LevelTooLow(Wrong):
    def of(self, view, flow, path):
        return Decision(levels={"big": view.level_count})


class LevelOfNobody(Wrong):
    def of(self, view, flow, path):
        return Decision(levels={"huge": 0})


class RateOfNothing(Wrong):
    def of(self, view, flow, path):
        return Decision(rates={flow: float("nan")})


class ShiftBackwards(Wrong):
    def of(self, view, flow, path):
        return Decision(shifts={"big": -0.1})


class ThresholdsUpsideDown(Wrong):
    def of(self, view, flow, path):
        return Decision(byte_levels={"big": ByteLevels("sent", (2e6, 1e6))})


class PortZero(Wrong):
    def of(self, view, flow, path):
        return Decision(ports={flow: 0})


class HashedUnannounced(Wrong):
    def of(self, view, flow, path):
        return Decision(hashed=(flow,))


class ExclusiveCable(Wrong):
    def of(self, view, flow, path):
        return Decision(exclusive=(path[0],))


class NotesOfObjects(Wrong):
    def of(self, view, flow, path):
        return Decision(notes={"view": view.fabric.hosts})


class AtSteps(Scheduler):
    name = "at-steps"
    summary = "fails at every communication step"
    events = STEP_EVENTS

    def decide(self, view, event):
        print("what a plug-in prints goes to standard error")
        if not view.steps:
            return Decision()
        return Decision(levels={event.job: 9})


class NeedsAnOption(Wrong):
    def __init__(self, *, share):
        self.share = share


class RefusesAnOption(Wrong):
    def __init__(self, *, share=2.0):
        if share > 1:
            raise ValueError(f"share must be 0 to 1, not {share}")


class FailsOnAnOption(Wrong):
    def __init__(self, *, share="half"):
        self.share = share / 2


class HearsOfNothing(Wrong):
    events = ("arrival",)


class NoMethod:
    name = "no-method"
    summary = "has no method"


class AnyQueue(Queue):
    name = "any-queue"

    def eligible(self, state, waiting):
        return [job.name for job in waiting]


class AnyPolicy(Policy):
    name = "any-policy"

    def decide(self, state, queued, event):
        for entry in queued:
            yield PlacementRequest(entry.job, entry.job.gpus)
            yield entry.job.name


class BrokenPolicy(Policy):
    name = "broken-policy"

    def decide(self, state, queued, event):
        yield PlacementRequest(queued[9].job, 1)


class StrangerPolicy(Policy):
    name = "stranger-policy"

    def decide(self, state, queued, event):
        yield PlacementRequest(Waiting("stranger", 1), 1)


class TwicePlacer(Placer):
    name = "twice-placer"

    def place(self, state, job, gpus):
        return Placement(("h0g0",) * gpus)


class TakenPlacer(Placer):
    name = "taken-placer"

    def place(self, state, job, gpus):
        return Placement(tuple(f"h0g{number}" for number in range(gpus)))


class LatePolicy(Policy):
    name = "late-policy"

    def decide(self, state, queued, event):
        return [PlacementRequest(entry.job, entry.job.gpus) for entry in queued]

    def wakes_at(self, state, waiting):
        return None


def star(*, hosts: Annotated[int, Count("number of hosts")]):
    return {"hosts": hosts}[f"{hosts}"]


def ring(*, hosts: Annotated[int, Count("number of hosts")]):
    return hosts
