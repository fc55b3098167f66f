"""What plug-ins import: the one public module for schedulers, parts of cluster managers, and fabrics of other packages.

A scheduler is a class that inherits from :class:`Scheduler`; keyword arguments of its constructor are its options, and
one called ``seed`` receives the run's seed::

    from testbed.plugins import ClusterView, Decision, Event, Scheduler


    class ArrivalOrder(Scheduler):
        name = "arrival-order"
        summary = "the job that came first goes first"
        decides = ("levels",)

        def decide(self, view: ClusterView, event: Event) -> Decision:
            last = view.level_count - 1
            return Decision(levels={name: min(rank, last) for rank, name in enumerate(view.jobs)})

An entry point in the package's metadata names it, and every command finds it by that name::

    [project.entry-points."testbed.schedulers"]
    arrival-order = "arrival_order:ArrivalOrder"

Parts of cluster managers (:class:`Queue`, :class:`Policy`, :class:`Placer`, :class:`Capacity`) are classes too, under
``testbed.queues``, ``testbed.policies``, ``testbed.placers`` and ``testbed.capacities``. A fabric is a function that
returns a :class:`Fabric`, under ``testbed.fabrics``; its parameters are the keys of the scenario's ``fabric``, each
with its meaning and unit: ``hosts: Annotated[int, Count("number of hosts")]``.

Both schedulers and managers hear of events: those of schedulers are :data:`Event`, those of managers
:data:`ManagerEvent`. Whatever is not here may move from one version to the next.
"""

from __future__ import annotations

from controller.decision import (
    JOB_EVENTS,
    STEP_EVENTS,
    ByteLevels,
    ClusterView,
    Decision,
    Event,
    JobArrived,
    JobDeparted,
    JobProfiled,
    LinkDown,
    LinkUp,
    Measured,
    Scheduler,
    Step,
    StepEnded,
    StepStarted,
    ThroughputMeasured,
)
from controller.ecmp_hash import ecmp_path, with_default_paths
from topologies.fabric import Fabric, Host, Link, Nic, Path, Port, Switch
from topologies.hosts import FabricBuilder, HostShape, require_choice, require_counts, require_multiple, require_rates
from topologies.parameters import Choice, Count, Flag, Rate
from workloads.job import Flow, Job, Phase, Straggler, Transfer
from workloads.managers.actions import (
    Action,
    Ask,
    Demote,
    Loan,
    Migrate,
    Pack,
    Preempt,
    Promote,
    Reclaim,
    Requeue,
    Resize,
    Start,
)
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import (
    Capacity,
    CapacityChanged,
    Ended,
    PlacementRequest,
    Placer,
    Policy,
    PolicyAction,
    Queue,
    QueuedJob,
    Submitted,
    Tick,
)
from workloads.managers.interfaces import Event as ManagerEvent
from workloads.managers.jobs import Placement, Running, Waiting

__all__ = [
    "JOB_EVENTS",
    "STEP_EVENTS",
    "Action",
    "Ask",
    "ByteLevels",
    "Capacity",
    "CapacityChanged",
    "Choice",
    "ClusterState",
    "ClusterView",
    "Count",
    "Decision",
    "Demote",
    "Ended",
    "Event",
    "Fabric",
    "FabricBuilder",
    "Flag",
    "Flow",
    "Host",
    "HostShape",
    "Job",
    "JobArrived",
    "JobDeparted",
    "JobProfiled",
    "Link",
    "LinkDown",
    "LinkUp",
    "Loan",
    "ManagerEvent",
    "Measured",
    "Migrate",
    "Nic",
    "Pack",
    "Path",
    "Phase",
    "Placement",
    "PlacementRequest",
    "Placer",
    "Policy",
    "PolicyAction",
    "Port",
    "Preempt",
    "Promote",
    "Queue",
    "QueuedJob",
    "Rate",
    "Reclaim",
    "Requeue",
    "Resize",
    "Running",
    "Scheduler",
    "Start",
    "Step",
    "StepEnded",
    "StepStarted",
    "Straggler",
    "Structure",
    "Submitted",
    "Switch",
    "ThroughputMeasured",
    "Tick",
    "Transfer",
    "Waiting",
    "ecmp_path",
    "empty_cluster",
    "require_choice",
    "require_counts",
    "require_multiple",
    "require_rates",
    "with_default_paths",
]
