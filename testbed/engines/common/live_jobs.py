"""The jobs of a run from their arrival on: how far each is, and what its hosts have reported. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from controller.dataplane.planner import FlowChange
from controller.decision import Decision
from testbed.engines.common.iterations import HostIteration, phase_errors
from testbed.engines.common.profiling import disturbed_iterations, profile_window, recent_throughput
from testbed.engines.common.worker_plan import time_shift_of
from testbed.experiment.experiment import Experiment
from topologies.fabric import Fabric
from workloads.iteration.protocol import IterationEnded
from workloads.job import Job

Spans = Sequence[tuple[float, float]]


@dataclass
class LiveJob:
    """A job that has arrived. ``iterations``: host -> how many it has ended, once the job has begun.

    ``began`` and ``shifted_at`` (when it last received a time shift) are on the engine's clock; ``ended``: it has left;
    ``opened``: its hosts know it; ``stopped``: a failure has ended its processes, and it may start again; ``first``:
    the number of the first iteration since it last started; ``repeated``: how many it makes again.
    """

    job: Job
    iterations: dict[str, int] = field(default_factory=dict)
    began: float = 0.0
    shifted_at: float = 0.0
    profiled: bool = False
    ended: bool = False
    opened: bool = False
    stopped: bool = False
    first: int = 0
    repeated: int = 0
    planned: int = field(init=False)

    def __post_init__(self) -> None:
        self.planned = self.job.iterations

    @property
    def completed(self) -> int:
        """Iterations that all hosts have ended."""
        return min(self.iterations.values(), default=0)

    @property
    def finished(self) -> bool:
        """Whether it has made all its iterations."""
        return bool(self.iterations) and self.completed >= self.job.iterations


class LiveJobs(Mapping[str, LiveJob]):
    """Name -> job, for all that have arrived; ``reports`` holds every iteration of every host."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._jobs: dict[str, LiveJob] = {}
        self.reports: list[HostIteration] = []

    def __getitem__(self, name: str) -> LiveJob:
        return self._jobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def _fabric(self) -> Fabric:
        return self._experiment.fabric

    def arrive(self, job: Job) -> LiveJob:
        """Take note that ``job`` is there."""
        live = self._jobs[job.name] = LiveJob(job)
        return live

    def begin(self, name: str, at: float) -> LiveJob:
        """Take note that job ``name`` begins its first iteration ``at``."""
        live = self._jobs[name]
        live.iterations = dict.fromkeys((self._fabric.host_of_gpu[gpu] for gpu in live.job.gpus), 0)
        live.began = at
        return live

    def restart(self, name: str) -> None:
        """Let a stopped job start again with the iterations that it has to make again.

        Iterations are numbered on: it has so many more. What some hosts said of one that others did not end is gone.
        """
        live = self._jobs[name]
        began = live.completed
        self.reports[:] = [report for report in self.reports if report.job != name or report.iteration < began]
        live.job = replace(live.job, iterations=live.planned + live.repeated)
        live.iterations, live.first = dict.fromkeys(live.iterations, began), began
        live.stopped = False

    def reconnected(self, job: Job) -> None:
        """Take note that the connections of ``job`` have changed."""
        self._jobs[job.name].job = job

    def iteration_ended(self, host: str, event: IterationEnded) -> LiveJob:
        """Take note of an iteration that ``host`` has ended; return its job."""
        live = self._jobs[event.job]
        live.iterations[host] = event.iteration + 1
        gpus = tuple(gpu for gpu in live.job.gpus if self._fabric.host_of_gpu[gpu] == host)
        self.reports.append(
            HostIteration(event.job, host, gpus, event.iteration, event.phases, event.late, event.waited)
        )
        return live

    def present(self) -> list[LiveJob]:
        """Those that have not left."""
        return [live for live in self._jobs.values() if not live.ended]

    def present_jobs(self) -> list[Job]:
        """Those that have not left, as jobs."""
        return [live.job for live in self.present()]

    def running(self) -> list[LiveJob]:
        """Those that hosts know and that have not left."""
        return [live for live in self.present() if live.opened or live.iterations]

    def still_there(self, changes: Iterable[FlowChange]) -> list[FlowChange]:
        """Return ``changes`` without those of flows whose job has left.

        Where several leave at once the controller learns of one after the other, and decides for the rest in between.
        """
        gone = {flow.id for live in self._jobs.values() if live.ended for flow in live.job.flows}
        return [change for change in changes if change.flow not in gone]

    def finished(self) -> list[LiveJob]:
        """Those that have made all their iterations and have not left."""
        return [live for live in self.present() if live.finished]

    def take_finished(self) -> list[LiveJob]:
        """Those that have made all their iterations since the last call; they count as ended from now on."""
        found = self.finished()
        for live in found:
            live.ended = True
        return found

    def completed(self, name: str) -> int:
        """Iterations that all hosts of job ``name`` have ended, but those that are made again; 0 before it arrives."""
        return self._jobs[name].completed - self._jobs[name].repeated if name in self._jobs else 0

    def recent_throughput(self, now: float) -> dict[str, float]:
        """How fast those that have begun were of late, up to ``now``, beside what they would be alone."""
        began = {live.job.name: (live.job, live.began) for live in self.present() if live.iterations}
        return recent_throughput(began, self.reports, self._experiment, now)

    def profiles_due(self, disturbed: Callable[[], Spans]) -> list[tuple[LiveJob, int]]:
        """Jobs a profile can be taken of now, and from which iteration; each once.

        ``disturbed`` returns when something disturbed the run, on the engine's clock.
        """
        waiting = [live for live in self.present() if not live.profiled]
        spans = disturbed() if waiting else ()
        due = [(live, self.profile_due(live, spans)) for live in waiting]
        return [(live, first) for live, first in due if first is not None]

    def profile_due(self, live: LiveJob, spans: Spans = ()) -> int | None:
        """From which iteration on a profile of ``live`` can be taken now; None to wait, or if one was taken before."""
        if live.profiled:
            return None
        disturbed = disturbed_iterations(live.job, self.reports, spans) if spans else frozenset()
        first = profile_window(live.completed, disturbed)
        live.profiled = first is not None
        return first

    def phase_errors(self, decision: Decision, origin: float) -> dict[str, list[float]]:
        """Job -> seconds between its phase and the begin of iterations that waited for it, under ``decision``."""
        found: dict[str, list[float]] = {}
        for name, live in self.items():
            time_shift = time_shift_of(decision, name, self._experiment.scale, origin)
            if time_shift is not None and time_shift.period > 0.0:
                reports = [r for r in self.reports if r.job == name and r.phases[0].start > live.shifted_at]
                found[name] = phase_errors(reports, time_shift)
        return found
