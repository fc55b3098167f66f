"""A serving plan on a fabric: the phases of a round of requests, and what they send between hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from topologies.fabric import Fabric
from topologies.limits import MESSAGES
from workloads.communication.collectives import Message, apart, expand, sent_in_pairs
from workloads.communication.layout import layout_of
from workloads.errors import JobError
from workloads.job import Phase
from workloads.phases import transfers_of
from workloads.serving.plan import ServingPlan
from workloads.serving.served import Served, cache_phase


@dataclass(frozen=True, slots=True)
class Rounds:
    """The ``phases`` of a round, all ``messages`` of it, and the requests ``served``; ``flops`` of a round."""

    phases: tuple[Phase, ...]
    messages: tuple[Message, ...]
    served: Served
    flops: float


def rounds_of(
    job: str, plan: ServingPlan, gpus: Sequence[str], fabric: Fabric, channels: int, seed: str, most_messages: int
) -> Rounds:
    """Return what ``job`` computes and sends for a round of requests.

    Raises :class:`JobError` if it does not fit, or sends more than ``most_messages`` in a round.
    """
    if len(gpus) != plan.gpus:
        raise JobError(job, f"has {len(gpus)} GPUs, its pools are for {plan.gpus}")
    _check_hosts(job, plan, gpus, fabric)
    served = served_by(job, plan, seed)
    placing = _Placing(job, plan, gpus, fabric, channels, served)
    phases: list[Phase] = []
    for slot in range(plan.slots):
        phases += placing.slot(slot)
        if len(placing.messages) > most_messages:
            raise JobError(job, f"too many messages, expected at most {MESSAGES} in an iteration of all jobs")
    flops = fmean(plan.request_flops(request) for request in served.requests) * plan.slots
    return Rounds(tuple(phases), tuple(placing.messages), served, flops)


def served_by(job: str, plan: ServingPlan, seed: str) -> Served:
    """The requests of whole rounds, and what each takes beside the mean of all; :class:`JobError` without any."""
    drawn = plan.arrivals.requests(seed)
    requests = drawn[: len(drawn) // plan.slots * plan.slots]
    if not requests:
        raise JobError(job, f"has fewer requests than instances, expected at least {plan.slots}")
    model = plan.decode_model()
    for each in requests:
        if each.prompt + each.output > model.most_tokens:
            what = f"a request of {each.prompt} and {each.output} tokens"
            raise JobError(job, f"{what} does not fit into a decode instance, expected at most {model.most_tokens}")
    seconds = {prompt: plan.prefill_s(prompt) for prompt in {each.prompt for each in requests}}
    prefill_s = tuple(seconds[each.prompt] for each in requests)
    mean_s, mean_prompt = fmean(prefill_s), fmean(each.prompt for each in requests)
    return Served(
        slots=plan.slots,
        decode_instances=plan.decode.instances,
        requests=requests,
        prefill_s=prefill_s,
        compute=tuple(each / mean_s for each in prefill_s),
        size=tuple(each.prompt / mean_prompt for each in requests),
        decode=model,
    )


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
        self.mean_prompt = fmean(request.prompt for request in self.served.requests)
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
        pairs = (
            layout_of([self.gpus[pool[part * len(pool) // parts]] for pool in (own, other)], self.fabric)
            for part in range(parts)
        )
        return sent_in_pairs(pairs, share, self.channels, "cache-")
