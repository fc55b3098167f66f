"""Traffic of parameter servers, one shard of the model for each GPU (Tiresias, Gu et al., NSDI 2019, section 3.2)."""

from __future__ import annotations


def server_egress(total: float, shards: float, gpus: int, here: int) -> float:
    """Bytes that a node sends per iteration.

    ``total``: bytes of the model; ``shards``: those whose server is on the node; ``gpus`` of the job, ``here`` of them
    on the node. Its workers push the gradients of what is elsewhere, its servers send parameters to workers elsewhere.
    """
    return here * (total - shards) + (gpus - here) * shards
