"""The phases of a job's stages, from a training plan placed on a fabric."""

from __future__ import annotations

from dataclasses import dataclass

from topologies.fabric import Fabric
from topologies.limits import MESSAGES
from workloads.communication.collectives import Message
from workloads.errors import JobError
from workloads.imported.goal import GoalSchedule
from workloads.imported.goal_phases import goal_phases
from workloads.job import Phase, Transfer
from workloads.phases import transfers_of
from workloads.training.placed import PlacedPhase, TooManyMessagesError, placed
from workloads.training.plan import TrainingPlan

StagedPlan = TrainingPlan | GoalSchedule
"""What says which GPUs compute and send in which order."""


@dataclass(frozen=True, slots=True)
class Stages:
    """The ``phases`` of a job, and all ``messages`` of an iteration."""

    phases: tuple[Phase, ...]
    messages: tuple[Message, ...]


def stages_of(
    job: str, plan: StagedPlan, gpus: tuple[str, ...], fabric: Fabric, channels: int, most_messages: int
) -> Stages:
    """Return what ``job`` computes and sends; :class:`JobError` if the plan does not fit, or sends too much."""
    try:
        if isinstance(plan, GoalSchedule):
            made = goal_phases(plan, gpus, fabric, channels, most_messages)
        else:
            made = placed(plan, gpus, fabric, channels, most_messages)
    except TooManyMessagesError:
        what = f"too many messages, expected at most {MESSAGES} in an iteration of all jobs"
        raise JobError(job, what) from None
    except ValueError as error:
        raise JobError(job, str(error)) from None
    messages = tuple(message for phase in made for message in phase.messages)
    known: dict[int, tuple[Transfer, ...]] = {}  # microbatches send the same messages
    for each in made:
        if id(each.messages) not in known:
            known[id(each.messages)] = transfers_of(job, each.messages)
    return Stages(tuple(_phase(each, known[id(each.messages)]) for each in made), messages)


def _phase(placed_phase: PlacedPhase, transfers: tuple[Transfer, ...]) -> Phase:
    return Phase(
        compute_s=placed_phase.compute_s,
        overlap=placed_phase.overlap,
        collective=placed_phase.collective,
        transfers=transfers,
        background=placed_phase.background,
        size=placed_phase.size,
        groups=placed_phase.groups,
        members=placed_phase.members,
        detached=placed_phase.detached,
        awaits=placed_phase.awaits,
    )
