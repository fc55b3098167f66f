"""The iterations of one job on one host: compute pauses, messages, and when each began and ended.

No barrier joins the hosts of a job: a host goes on when its own GPUs have computed and its own
messages are complete, so a late peer delays exactly those that wait for its bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

from workloads.iteration.early_arrivals import EarlyArrivals
from workloads.iteration.endpoints import ReceiverT, SenderT
from workloads.iteration.hold import Hold
from workloads.iteration.job_plan import OutgoingMessage, PhasePlan
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.pending import Pending
from workloads.iteration.protocol import PhaseTimes, StepEdge
from workloads.iteration.shared_gpus import GpuShare
from workloads.iteration.time_shift import PhaseKeeper

Clock = Callable[[], float]
Timer = Callable[[float, Callable[[float], None]], None]
ComputeTimes = Callable[[int, int], list[float]]
Report = Callable[[int, tuple[PhaseTimes, ...], float, float], None]
StepReport = Callable[[StepEdge, int, int], None]


@dataclass(slots=True)
class _Background:
    """Communication of phase ``index`` that goes on beside later ones."""

    index: int
    plan: PhasePlan
    pending: Pending
    ended: bool = False


class JobProgram(Generic[SenderT, ReceiverT]):
    """State machine of one job on one host; all times are those of the host's monotonic clock.

    ``departure`` is the time in seconds that a NIC takes to send one full packet. The job ends after
    ``iterations``. ``report`` receives (iteration, times of its phases, the largest lateness of a timer, seconds
    waited for its phase or its GPUs before it). ``blocked`` is called with a flow for which there is no room.
    ``step``, if given, is called with ("begin" or "end", iteration, phase) of the communication of each phase that
    has any.
    ``phase_keeper`` keeps the job at its shift, None without one; ``pcie`` the table of flows that may send, or None;
    ``gpus`` is how it requests its GPUs, None where no other job can use them. ``link_is_busy`` says of a flow whether
    others send on its first link, None where that makes no difference: a message does not wait for ``departure`` there,
    since a token bucket that others empty releases nothing at once.
    """

    def __init__(
        self,
        phases: tuple[PhasePlan, ...],
        compute_times: ComputeTimes,
        slice_size: int,
        departure: float,
        iterations: int,
        clock: Clock,
        timer: Timer,
        report: Report,
        blocked: Callable[[SenderT], None],
        step: StepReport | None = None,
    ) -> None:
        self._phases = phases
        self._compute_times = compute_times
        self._slice = slice_size
        self._departure = departure
        self._iterations = iterations
        self._clock = clock
        self._timer = timer
        self._report = report
        self._blocked = blocked
        self._step = step
        self.phase_keeper: PhaseKeeper | None = None
        self.pcie: PcieSemaphore[SenderT] | None = None
        self.gpus: GpuShare | None = None
        self.link_is_busy: Callable[[str], bool] | None = None
        self.out: dict[str, SenderT] = {}
        self.into: dict[str, ReceiverT] = {}
        self._dependents: dict[str, list[SenderT]] = {}
        self._awaited: set[str] = set()
        self._arrivals: dict[str, float] = {}
        self._early = EarlyArrivals()
        self._background: list[_Background] = []
        self._detached: dict[str, deque[OutgoingMessage]] = {}
        self.iteration = 0
        self.halted = False
        self._phase = 0
        self._times: list[PhaseTimes] = []
        self._late = 0.0
        self._waited = 0.0
        self._communicating = False
        self._origin = 0.0
        self._start = self._ready = self._compute_end = self._communication_end = 0.0
        self._compute: list[float] = []
        self._pending = Pending((), 0.0)

    def start(self, at: float) -> None:
        """Begin the first iteration at ``at``; one that begins late counts as one whose timer was late."""
        self._origin = at
        self._timer(at, self._begin_first)

    @property
    def over(self) -> bool:
        """Whether it sends and receives nothing more: halted, or all iterations made."""
        return self.halted or self.iteration >= self._iterations

    def halt(self) -> None:
        """Send nothing more and report nothing more."""
        self.halted = True
        if self.pcie is not None:
            self.pcie.left(self.out)
        if self.gpus is not None:
            self.gpus.leave()

    def _begin_first(self, late: float) -> None:
        self._late = late
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        now = self._clock()
        self._waited = 0.0 if self.phase_keeper is None else self.phase_keeper.wait(now)
        if self._waited > 0.0:
            self._timer(now + self._waited, lambda _late: self._begin_phase())
        else:
            self._begin_phase()

    def _begin_phase(self, late: float = 0.0) -> None:
        """Compute as soon as the request is there, and this job has its GPUs."""
        if self.halted:
            return
        self._late = max(self._late, late)
        requests = self._phases[self._phase].requests
        now = self._clock()
        if requests and (arrives := self._origin + requests[self.iteration].at) > now:
            self._waited += arrives - now if self._phase == 0 else 0.0
            self._timer(arrives, self._begin_phase)
            return
        if self.gpus is None:
            self._begin_compute()
            return
        asked = self._clock()

        def go() -> None:
            if self._phase == 0:
                self._waited += self._clock() - asked
            self._begin_compute()

        self.gpus.ask(go)

    def _begin_compute(self) -> None:
        plan = self._phases[self._phase]
        self._compute = self._compute_times(self.iteration, self._phase)
        longest = max(self._compute)
        self._start = self._clock()
        self._communicating = False
        self._communication_end = 0.0
        self._compute_end = self._start + longest
        ready = self._start + (1.0 - plan.overlap) * longest
        self._timer(ready, self._begin_messages)
        if ready < self._compute_end:
            self._timer(self._compute_end, self._time_passed)

    def _begin_messages(self, late: float) -> None:
        if self.halted:
            return
        self._late = max(self._late, late)
        self._ready = self._clock()
        self._give_back_gpus()
        self._communicating = True
        plan = self._phases[self._phase].in_iteration(self.iteration)
        self._tell_step("begin", plan, self._phase)
        for incoming in plan.into:
            self._expect(self.into[incoming.flow], incoming.size)
        waits = [*(() if plan.detached else self._outgoing(plan)), *(self.into[each.flow] for each in plan.into)]
        self._pending = Pending(waits, self._ready + plan.inside_s)
        if plan.background:
            self._background.append(_Background(self._phase, plan, self._pending))
        if plan.inside_s > 0.0:
            self._timer(self._pending.inside_end, self._time_passed)
        if plan.detached:
            self._send_detached(plan)
        elif plan.out:
            departure = self._departure_of(plan)
            self._timer(self._ready + departure, lambda _late: self._send_messages(plan, departure))
        if plan.background or plan.detached or not plan.out:
            self._check()

    def _expect(self, stream: ReceiverT, size: int) -> None:
        """Wait for the next message of ``stream``; it may have arrived before this host was ready for it."""
        stream.begin(size, self._slice)
        if stream.done:
            self._arrivals[stream.flow] = self._early.when(stream, size, self._ready)
        else:
            self._awaited.add(stream.flow)

    def _note_arrival(self, stream: ReceiverT) -> None:
        """Record when a message had arrived: the current one, or one that comes early."""
        if stream.flow not in self._awaited:
            self._early.note(stream, self._clock())
        elif stream.done:
            self._awaited.discard(stream.flow)
            self._arrivals[stream.flow] = self._clock()

    def _send_messages(self, plan: PhasePlan, departure: float) -> None:
        """Send the first packets when a NIC would have sent them whole: a token bucket releases them at once.

        ``departure``: how long they have waited for that.
        """
        if self.halted:
            return
        streams = self._outgoing(plan)
        for message, stream in zip(plan.out, streams, strict=True):
            after = message.after
            stream.begin(message.size, message.lead, self.into[after] if after is not None else None)
            self._hold_back(stream, departure)
            if after is not None:
                self._dependents.setdefault(after, []).append(stream)
        if self.pcie is not None:
            self.pcie.began(streams)
        for stream in streams:
            if not stream.held & Hold.HEAD_START:
                self._send(stream)
        self._check()

    def _send_detached(self, plan: PhasePlan) -> None:
        """Put each message in line behind those that its flow has not ended."""
        departure = self._departure_of(plan)
        for message in plan.out:
            line = self._detached.setdefault(message.flow, deque())
            line.append(message)
            if len(line) == 1:
                self._begin_detached(message, departure)

    def _begin_detached(self, message: OutgoingMessage, departure: float) -> None:
        stream = self.out[message.flow]

        def go(_late: float) -> None:
            if self.halted:
                return
            stream.begin(message.size, message.lead, None)
            self._hold_back(stream, departure)
            if not stream.held & Hold.HEAD_START:
                self._send(stream)
            self._end_detached(stream)
            self._check()

        self._timer(self._clock() + departure, go)

    def _end_detached(self, stream: SenderT) -> None:
        """Go on with the next message of a flow whose message has arrived."""
        line = self._detached.get(stream.flow)
        if line and stream.started and stream.done:
            stream.started = False
            line.popleft()
            if line:
                self._begin_detached(line[0], 0.0)

    def _departure_of(self, plan: PhasePlan) -> float:
        """Seconds by which the links of ``plan`` let its messages start ahead: none if one of them is busy."""
        busy = self.link_is_busy
        return 0.0 if busy is not None and any(busy(message.flow) for message in plan.out) else self._departure

    def _hold_back(self, stream: SenderT, departure: float) -> None:
        """Delay the start of a paced message so that it ends when its rate implies."""
        more = stream.hold_back_s(departure)
        if more == 0.0:
            return
        stream.held |= Hold.HEAD_START

        def go(_late: float) -> None:
            stream.held &= ~Hold.HEAD_START
            if self.pcie is not None:
                self.pcie.changed(stream.flow)
            self.resume(stream)

        self._timer(self._clock() + more, go)

    def _time_passed(self, late: float) -> None:
        if not self.halted:
            self._late = max(self._late, late)
            self._give_back_gpus()
            self._check()

    def _give_back_gpus(self) -> None:
        """Release the GPUs for other jobs once this job has computed."""
        if self.gpus is not None and self._clock() >= self._compute_end:
            self.gpus.give_back()

    def arrived(self, stream: ReceiverT) -> None:
        """Take note that bytes came in on ``stream``: send what waited for them."""
        self._note_arrival(stream)
        if self.halted or not (self._communicating or self._background or self._detached):
            return
        forwarding = [each for each in self._dependents.get(stream.flow, ()) if not each.done]
        for dependent in forwarding:
            self._send(dependent)
        if any(dependent.done for dependent in forwarding):
            self._check()
            return
        # Bytes in the middle of a message end nothing: most bytes are such, and there is no need to look further.
        if stream.done:
            self._check()

    def resume(self, stream: SenderT) -> None:
        """Go on with a flow that was held, that waited for room, or whose message has arrived."""
        behind = self._background or self._detached
        if self.halted or not (self._communicating or (behind and stream.started)):
            return
        self._send(stream)
        if self._detached:
            self._end_detached(stream)
        self._check()

    def _send(self, stream: SenderT) -> None:
        if stream.send(self._slice):
            self._blocked(stream)
        elif self.pcie is not None and stream.done:
            self.pcie.sent(stream)

    def _tell_step(self, what: StepEdge, plan: PhasePlan, index: int) -> None:
        if self._step is not None and (plan.out or plan.into):
            self._step(what, self.iteration, index if plan.number < 0 else plan.number)

    def _outgoing(self, plan: PhasePlan) -> list[SenderT]:
        return [self.out[message.flow] for message in plan.out]

    def _check(self) -> None:
        """End the communication, and the phase, as soon as nothing is left to wait for."""
        for behind in self._background:
            self._end_background(behind)
        if not self._communicating:
            return
        plan = self._phases[self._phase]
        if self._communication_end == 0.0:
            if not plan.background:
                if not self._pending.over(self._clock()):
                    return
                self._tell_step("end", plan, self._phase)
            self._communication_end = self._clock()
        if self._phase + 1 == len(self._phases) and not self._all_sent:
            return
        now = self._clock()
        if now >= self._compute_end:
            self._end_phase(now)

    @property
    def _all_sent(self) -> bool:
        """Whether nothing that later phases did not wait for is on its way; requests do not wait for those before."""
        more = self._phases[0].requests and self.iteration + 1 < self._iterations
        return bool(more) or not (any(self._detached.values()) or any(not each.ended for each in self._background))

    def _end_background(self, behind: _Background) -> None:
        """Record that background communication has ended; its phase may have ended long before."""
        if behind.ended or not behind.pending.over(self._clock()):
            return
        behind.ended = True
        self._tell_step("end", behind.plan, behind.index)
        if behind.index < len(self._times):
            self._times[behind.index] = replace(self._times[behind.index], communication_end=self._clock())
        else:
            self._communication_end = self._clock()

    def _finish(self, plan: PhasePlan) -> tuple[float, ...]:
        """The messages of ``plan`` are complete on this host, the next ones may begin; return when each arrived."""
        for message in () if plan.detached else plan.out:
            self.out[message.flow].started = False
            if message.after is not None:
                self._dependents.pop(message.after, None)
        for incoming in plan.into:
            self.into[incoming.flow].finish()
        return tuple(self._arrivals.pop(incoming.flow) for incoming in plan.into)

    def _end_phase(self, now: float) -> None:
        plan = self._phases[self._phase]
        self._communicating = False
        self._give_back_gpus()
        arrivals = () if plan.background else self._finish(plan)
        compute = tuple(self._compute)
        self._times.append(
            PhaseTimes(self._start, self._ready, self._communication_end, now, compute, arrivals, plan.number)
        )
        self._phase += 1
        if self._phase == len(self._phases):
            for behind in self._background:
                self._times[behind.index] = replace(self._times[behind.index], arrivals=self._finish(behind.plan))
            self._background.clear()
            self._report(self.iteration, tuple(self._times), self._late, self._waited)
            self._phase, self._times, self._late = 0, [], 0.0
            self.iteration += 1
            if self.iteration < self._iterations:
                self._begin_iteration()
        else:
            self._begin_phase()
