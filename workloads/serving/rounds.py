"""A serving plan on a fabric: the phases of a round of requests, and what they send between hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from topologies.fabric import Fabric
from workloads.communication.collectives import Channel, Message, apart, expand
from workloads.communication.layout import layout_of
from workloads.errors import JobError
from workloads.job import Phase
from workloads.phases import transfers_of
from workloads.serving.plan import ServingPlan
from workloads.serving.served import Request, Served, cache_phase


@dataclass(frozen=True, slots=True)
class Rounds:
    """The ``phases`` of a round, all ``messages`` of it, and the requests ``served``; ``flops`` of a round."""

    phases: tuple[Phase, ...]
    messages: tuple[Message, ...]
    served: Served
    flops: float


def rounds_of(job: str, plan: ServingPlan, gpus: Sequence[str], fabric: Fabric, channels: int, seed: str) -> Rounds:
    """Return what ``job`` computes and sends for a round of requests; :class:`JobError` if it does not fit."""
    if len(gpus) != plan.gpus:
        raise JobError(job, f"has {len(gpus)} GPUs, its pools are for {plan.gpus}")
    _check_hosts(job, plan, gpus, fabric)
    served = served_by(plan, seed)
    if not served.requests:
        raise JobError(job, f"has fewer requests than instances, expected at least {plan.slots}")
    model = served.decode
    for request in served.requests:
        if request.prompt + request.output > model.most_tokens:
            what = f"a request of {request.prompt} and {request.output} tokens"
            raise JobError(job, f"{what} does not fit into a decode instance, expected at most {model.most_tokens}")
    placing = _Placing(job, plan, gpus, fabric, channels, served)
    phases = [phase for slot in range(plan.slots) for phase in placing.slot(slot)]
    flops = fmean(plan.request_flops(request) for request in served.requests) * plan.slots
    return Rounds(tuple(phases), tuple(placing.messages), served, flops)


def served_by(plan: ServingPlan, seed: str) -> Served:
    """The requests of whole rounds, and what each takes beside the mean of all."""
    requests = plan.arrivals.requests(seed)
    requests = requests[: len(requests) // plan.slots * plan.slots]
    seconds: dict[int, float] = {}
    for each in requests:
        if each.prompt not in seconds:
            seconds[each.prompt] = plan.prefill_s(each)
    prefill_s = tuple(seconds[each.prompt] for each in requests)
    mean_s, mean_prompt = fmean(prefill_s or [1.0]), _mean_prompt(requests)
    return Served(
        slots=plan.slots,
        decode_instances=plan.decode.instances,
        requests=requests,
        prefill_s=prefill_s,
        compute=tuple(each / mean_s for each in prefill_s),
        size=tuple(each.prompt / mean_prompt for each in requests),
        decode=plan.decode_model(),
    )


def _mean_prompt(requests: Sequence[Request]) -> float:
    return fmean(each.prompt for each in requests) if requests else 1.0


def _check_hosts(job: str, plan: ServingPlan, gpus: Sequence[str], fabric: Fabric) -> None:
    """Instances of the two pools share no host, and a decode instance stays inside one."""
    hosts = [fabric.host_of_gpu[gpu] for gpu in gpus]
    prefill, decode = set(hosts[: plan.prefill.gpus]), set(hosts[plan.prefill.gpus :])
    if shared := prefill & decode:
        raise JobError(job, f"prefill and decode share host {min(shared)}, expected hosts of their own for each pool")
    for instance in range(plan.decode.instances):
        own = {hosts[place] for place in plan.decode.places(instance, plan.prefill.gpus)}
        if len(own) > 1:
            raise JobError(job, f"decode instance {instance} lies on {len(own)} hosts, expected one host for each")


@dataclass
class _Placing:
    job: str
    plan: ServingPlan
    gpus: Sequence[str]
    fabric: Fabric
    channels: int
    served: Served

    def __post_init__(self) -> None:
        self.messages: list[Message] = []
        self.mean_prompt = _mean_prompt(self.served.requests)
        self.prefill_s = fmean(self.served.prefill_s)

    def slot(self, slot: int) -> tuple[Phase, Phase, Phase]:
        """Prefill, sending of the cache, arrival, for the request in ``slot``."""
        plan = self.plan
        instance = slot % plan.prefill.instances
        own = plan.prefill.places(instance)
        other = plan.decode.places(slot % plan.decode.instances, plan.prefill.gpus)
        sums = self._sums(own, instance)
        size = plan.cache_bytes * self.mean_prompt
        caches = self._caches(own, other)
        self.messages += (*sums, *caches)
        return (
            Phase(
                self.prefill_s, 0.0, "ring" if sums else "none", transfers_of(self.job, sums),
                size=plan.sum_bytes(self.mean_prompt), groups=(own,), members=own,
            ),
            Phase(
                0.0, 0.0, "point-to-point", transfers_of(self.job, caches), size=size, groups=((*own, *other),),
                members=own, detached=True,
            ),
            Phase(0.0, 0.0, "none", members=other, awaits=(cache_phase(slot),)),
        )  # fmt: skip

    def _sums(self, own: Sequence[int], instance: int) -> tuple[Message, ...]:
        """Sums of a prefill instance that lies on several hosts."""
        layout = layout_of([self.gpus[place] for place in own], self.fabric)
        if len(layout.shares) == 1:
            return ()
        made = expand("hierarchical", layout, self.plan.sum_bytes(self.mean_prompt), channels=self.channels)
        return tuple(apart([made], f"prefill{instance}-"))

    def _caches(self, own: Sequence[int], other: Sequence[int]) -> tuple[Message, ...]:
        """Every rank sends its share of the cache to a rank of the other pool; equal ports send together."""
        parts = max(len(own), len(other))
        share = self.plan.cache_bytes * self.mean_prompt / parts
        sizes: dict[Channel, float] = {}
        for part in range(parts):
            pair = [self.gpus[pool[part * len(pool) // parts]] for pool in (own, other)]
            for message in expand("point-to-point", layout_of(pair, self.fabric), share, channels=self.channels):
                channel = replace(message.channel, role=f"cache-{message.channel.role}")
                sizes[channel] = sizes.get(channel, 0.0) + message.bytes
        return tuple(Message(channel, size) for channel, size in sizes.items())
